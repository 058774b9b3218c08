# Packages: cpack writes .deb files of the parts that are installed; scripts/package makes these, an archive that may lie
# anywhere and a wheel.
set(TEMPER_MAINTAINER "Temper developers <developers@temper.example>" CACHE STRING "Who answers for the packages")

# ---- files that Debian's policy asks for ----

set(ENV{SOURCE_DATE_EPOCH} ${TEMPER_EPOCH})
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${CMAKE_BINARY_DIR}/package/changelog
"temper (${PROJECT_VERSION}) unstable; urgency=medium

  * Version ${PROJECT_VERSION}: see https://temper.example/ and CHANGELOG.md of the sources.

 -- ${TEMPER_MAINTAINER}  ${date}
")
file(WRITE ${CMAKE_BINARY_DIR}/package/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: temper

Files: *
Copyright: 2026 The authors of Temper
License: Apache-2.0
 On Debian systems the full text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
")

# ---- one package for each part ----

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME temper)
set(CPACK_PACKAGE_CONTACT ${TEMPER_MAINTAINER})
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/package_files.cmake)
set(CPACK_TEMPER_FILES ${CMAKE_BINARY_DIR}/package)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL program library development)
if(TARGET temper_mpi)
    list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
if(TARGET temper_smpi)
    list(APPEND CPACK_COMPONENTS_ALL simgrid)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(ABI ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME temper)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
# For pictures as PNG and PDF, the local page of runs, threads that stay on processors: loaded when they are there.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "fonts-dejavu-core, libhwloc15, libmicrohttpd12, librsvg2-2")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
"Temper fine-tunes Hugging Face language models on the processor, says what a
run needs before it runs and where its time and memory went, and reads traces
and records of other trainers.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libtemper${ABI})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
# Which package a program needs that is linked with these, and that the linker's cache is stale.
file(WRITE ${CMAKE_BINARY_DIR}/package/shlibs
"libtemper ${ABI} libtemper${ABI} (>= ${PROJECT_VERSION})
libtemper-trace ${ABI} libtemper${ABI} (>= ${PROJECT_VERSION})
")
file(WRITE ${CMAKE_BINARY_DIR}/package/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA
    ${CMAKE_BINARY_DIR}/package/shlibs ${CMAKE_BINARY_DIR}/package/triggers)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION
"What the command temper does, for other programs: tokenizers, generation,
training, evaluation, plans, and the analysis of traces and runs.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtemper-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libtemper${ABI} (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
"Headers, and what pkg-config and CMake need to build programs against
libtemper.")

set(CPACK_DEBIAN_MPI_PACKAGE_NAME temper-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "temper (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_MPI_DESCRIPTION
"The plug-in with which temper divides a run over the processes of Open MPI.")

set(CPACK_DEBIAN_SIMGRID_PACKAGE_NAME temper-simgrid)
set(CPACK_DEBIAN_SIMGRID_PACKAGE_SECTION science)
set(CPACK_DEBIAN_SIMGRID_PACKAGE_DEPENDS "temper (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_SIMGRID_DESCRIPTION
"simulated networks for temper
 The plug-in with which temper simulate plays many processes in SimGrid.")

include(CPack)
