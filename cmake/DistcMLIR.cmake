# Tablegen, and how a library against MLIR is made: shared LLVM and MLIR, no RTTI, no exceptions.
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
include_directories(${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})

# distc_tablegen(<target> <file.td> <output> <mlir-tblgen option>...): a list of
# (output, option) pairs made from one .td file.
function(distc_tablegen target file)
  set(LLVM_TARGET_DEFINITIONS ${file})
  set(args ${ARGN})
  while(args)
    list(POP_FRONT args output options)
    separate_arguments(options UNIX_COMMAND "${options}")
    mlir_tablegen(${output} ${options})
  endwhile()
  add_public_tablegen_target(${target})
endfunction()

# MLIR's headers, and the classes made from our own ODS, cost every file of the compiler most of its time to parse: they
# are precompiled once, with this target's flags, for all libraries and tools. Files still include what they use.
function(distc_precompile_headers)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/precompiled/empty.cpp CONTENT "")
  add_library(DistcPrecompiled STATIC ${CMAKE_BINARY_DIR}/precompiled/empty.cpp)
  distc_mlir_flags(DistcPrecompiled)
  add_dependencies(DistcPrecompiled ${ARGN})
  target_precompile_headers(DistcPrecompiled PRIVATE ${CMAKE_SOURCE_DIR}/cmake/Precompiled.h)
  # Half of the joined sources include the other dialects, too; alone, they would be compiled anew for each change there.
  if(DISTC_JOIN_SOURCES)
    target_precompile_headers(DistcPrecompiled PRIVATE ${CMAKE_SOURCE_DIR}/dialects/dist/Dist.h
                              ${CMAKE_SOURCE_DIR}/dialects/drt/Drt.h)
  endif()
endfunction()

function(distc_mlir_flags target)
  # As LLVM is compiled. What would clean up behind exceptions is a good part of the code and of the time that it takes.
  target_compile_options(${target} PRIVATE -fno-rtti -fno-exceptions)
  target_include_directories(${target} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
endfunction()

# A library, a tool or a test of the compiler.
# distc_precompiled_mlir(<name> [<threshold>]): see distc_inline_less.
function(distc_precompiled_mlir name)
  distc_mlir_flags(${name})
  distc_inline_less(${name} ${ARGN})
  distc_reuse_precompiled(${name} DistcPrecompiled)
endfunction()

# distc_mlir_library(<name> [HOT] SOURCES ... DEPENDS <tablegen targets> LINK <libraries>). HOT: every node of a large
# graph goes through it, many times.
function(distc_mlir_library name)
  cmake_parse_arguments(ARG "HOT" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${DISTC_JOIN_SOURCES} UNITY_BUILD_BATCH_SIZE 10)
  distc_precompiled_mlir(${name} $<IF:$<BOOL:${ARG_HOT}>,100,30>)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK} DistcLLVM)
endfunction()

# LLVM and MLIR. A program with the property DISTC_LLVM_ARCHIVES has in it what it calls of them: it starts in a third of
# the time that the shared libraries take to load, compiles a graph a tenth faster, and is packed without 250 MB of them.
# Other tools and tests are linked in less.
add_library(DistcLLVM INTERFACE)
set(archives $<BOOL:$<TARGET_PROPERTY:DISTC_LLVM_ARCHIVES>>)
file(GLOB llvm_archives CONFIGURE_DEPENDS ${LLVM_LIBRARY_DIR}/libMLIR*.a ${LLVM_LIBRARY_DIR}/libLLVM*.a
     ${LLVM_LIBRARY_DIR}/libPolly*.a)
target_link_libraries(DistcLLVM INTERFACE
  $<$<NOT:${archives}>:MLIR> $<$<NOT:${archives}>:LLVM> $<${archives}:DistcLLVMArchives>)
add_library(DistcLLVMArchives INTERFACE)
target_link_options(DistcLLVMArchives INTERFACE LINKER:--gc-sections)
target_link_libraries(DistcLLVMArchives INTERFACE -Wl,--start-group ${llvm_archives} -Wl,--end-group zstd)
# lld asks for every target of LLVM's, which are more than half of it: those that distc makes code for are there, others
# are nothing.
set(no_targets "")
foreach(target IN LISTS LLVM_TARGETS_TO_BUILD)
  if(NOT target MATCHES "^(X86|NVPTX)$")
    foreach(part IN ITEMS TargetInfo Target TargetMC AsmParser AsmPrinter)
      string(APPEND no_targets "void LLVMInitialize${target}${part}(void)\n{}\n")
    endforeach()
  endif()
endforeach()
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/no_targets.c CONTENT "${no_targets}")
add_library(DistcNoTargets OBJECT ${CMAKE_BINARY_DIR}/no_targets.c)
target_sources(DistcLLVMArchives INTERFACE $<TARGET_OBJECTS:DistcNoTargets>)

# The linker of executables.
add_library(DistcLLD INTERFACE)
target_link_libraries(DistcLLD INTERFACE ${LLVM_LIBRARY_DIR}/liblldELF.a ${LLVM_LIBRARY_DIR}/liblldCommon.a
                      ZLIB::ZLIB zstd)
