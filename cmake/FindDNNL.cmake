# Debian's oneDNN ships a CMake configuration that wants OpenCL; the library and
# its header are all that is needed here.
find_path(DNNL_INCLUDE_DIR dnnl.h)
find_library(DNNL_LIBRARY dnnl)
if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
    set(DNNL_FOUND TRUE)
    set(DNNL_STATUS "found: ${DNNL_LIBRARY}")
    add_library(DNNL::dnnl UNKNOWN IMPORTED)
    set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                          INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
else()
    set(DNNL_FOUND FALSE)
    set(DNNL_STATUS "not found (apt-get install libdnnl-dev)")
endif()
