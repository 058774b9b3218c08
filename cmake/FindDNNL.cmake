# oneDNN 3, the peer of bench/gemm_bench: DNNL::dnnl and DNNL_STATUS.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl_version.h)
find_library(DNNL_LIBRARY dnnl)
set(DNNL_FOUND FALSE)
set(DNNL_STATUS "not found (CMAKE_PREFIX_PATH tells where it is)")
if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
    file(STRINGS ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h major
         REGEX "DNNL_VERSION_MAJOR [0-9]+")
    if(major MATCHES "MAJOR ([0-9]+)" AND CMAKE_MATCH_1 GREATER_EQUAL 3)
        set(DNNL_FOUND TRUE)
        set(DNNL_STATUS "found: ${DNNL_LIBRARY}")
        add_library(DNNL::dnnl UNKNOWN IMPORTED)
        set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                              INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
    else()
        set(DNNL_STATUS "${DNNL_LIBRARY} is older than 3")
    endif()
endif()
