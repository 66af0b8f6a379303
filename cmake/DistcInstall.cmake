# cmake --install, and a package by cpack. The prefix may be moved: distc finds its runtime beside itself.
if(NOT DISTC_COMPILER)
  return()
endif()
include(GNUInstallDirs)
include(DistcReference)
# A wheel (tools/make_wheel.py) has the libraries that distc loads beside the runtime, and those look for theirs where the
# program says.
set_target_properties(distc distc-opt distc-translate PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
foreach(tool IN ITEMS distc distc-opt distc-translate)
  target_link_options(${tool} PRIVATE LINKER:--disable-new-dtags)
endforeach()
install(TARGETS distc distc-opt distc-translate RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# What executables are linked with, all of it: compiling a graph needs no compiler, and the linker is in distc.
set(runtime lib/distc)
set(archives drt drt_cpu)
foreach(target IN ITEMS drt_loader drt_cuda drt_cuda_api drt_cuda_emulated)
  if(TARGET ${target})
    list(APPEND archives ${target})
  endif()
endforeach()
install(TARGETS ${archives} ARCHIVE DESTINATION ${runtime})
install(DIRECTORY ${CMAKE_ARCHIVE_OUTPUT_DIRECTORY}/ DESTINATION ${runtime} FILES_MATCHING PATTERN "drt*.link"
        PATTERN carried EXCLUDE PATTERN toolchain EXCLUDE)
if(NOT DISTC_SANITIZE)
  foreach(folder IN ITEMS carried toolchain)
    install(DIRECTORY ${CMAKE_ARCHIVE_OUTPUT_DIRECTORY}/${folder} DESTINATION ${runtime} PATTERN stamp EXCLUDE)
  endforeach()
endif()

# Made by distc itself from its command line.
set(pages ${CMAKE_BINARY_DIR}/pages)
add_custom_command(
  OUTPUT ${pages}/distc.1 ${pages}/distc.bash ${pages}/_distc ${pages}/distc.fish
  COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}
  COMMAND distc manual > ${pages}/distc.1
  COMMAND distc completion bash > ${pages}/distc.bash
  COMMAND distc completion zsh > ${pages}/_distc
  COMMAND distc completion fish > ${pages}/distc.fish
  DEPENDS distc
  VERBATIM)
add_custom_target(distc_pages ALL DEPENDS ${pages}/distc.1)
install(FILES ${pages}/distc.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${pages}/distc.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME distc)
install(FILES ${pages}/_distc DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${pages}/distc.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(PROGRAMS ${CMAKE_SOURCE_DIR}/tools/run_in_tensorflow.py DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME distc)
set(CPACK_PACKAGE_VENDOR distc)
set(CPACK_PACKAGE_CONTACT "distc's developers")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)
