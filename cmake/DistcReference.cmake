# docs/reference in the build folder: a page a dialect and a page a folder of passes, as their declarations describe them.
set(DISTC_REFERENCE ${CMAKE_BINARY_DIR}/docs/reference)
set(reference_pages)

# distc_reference_page(<page> <title> <file.td> <mlir-tblgen option>...)
function(distc_reference_page page title file)
  set(output ${DISTC_REFERENCE}/${page}.md)
  set(source ${CMAKE_SOURCE_DIR}/${file})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DGENERATOR=$<TARGET_FILE:mlir-tblgen> "-DOPTIONS=${ARGN}" "-DINCLUDES=${CMAKE_SOURCE_DIR};${MLIR_INCLUDE_DIRS}"
            -DSOURCE=${source} "-DTITLE=${title}" -DOUTPUT=${output} -P ${CMAKE_SOURCE_DIR}/cmake/WriteReferencePage.cmake
    # A file's own folder, and what dialects and passes include of the dialects.
    DEPENDS ${reference_sources} ${source} ${CMAKE_SOURCE_DIR}/cmake/WriteReferencePage.cmake
    VERBATIM)
  set(reference_pages ${reference_pages} ${output} PARENT_SCOPE)
endfunction()

file(GLOB reference_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/dialects/*/*.td)
distc_reference_page(dfg "The dialect dfg: the dataflow graph" dialects/dfg/DfgOps.td -gen-dialect-doc -dialect=dfg)
distc_reference_page(dist "The dialect dist: the plan of distribution" dialects/dist/DistOps.td -gen-dialect-doc -dialect=dist)
distc_reference_page(drt "The dialect drt: the plan of a task" dialects/drt/DrtOps.td -gen-dialect-doc -dialect=drt)
distc_reference_page(drt-servers "The dialect drt: what replicas and servers give each other" dialects/drt/ServerOps.td -gen-op-doc)
foreach(folder IN ITEMS graph rewrite rows distribute lower)
  distc_reference_page(passes-${folder} "Passes of passes/${folder}" passes/${folder}/Passes.td -gen-pass-doc)
endforeach()
add_custom_target(distc_reference ALL DEPENDS ${reference_pages})
install(DIRECTORY ${DISTC_REFERENCE} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
