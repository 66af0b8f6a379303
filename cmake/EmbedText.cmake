# Writes text files as C++ strings, a row {"name", R"(contents)"} each: cmake -DOUTPUT=... "-DFILES=A;B" -P this
cmake_policy(VERSION 3.25)
set(rows "")
foreach(file IN LISTS FILES)
  file(READ ${file} contents)
  get_filename_component(name ${file} NAME)
  string(APPEND rows "{\"${name}\", R\"EMBEDDED(${contents})EMBEDDED\"},\n")
endforeach()
file(WRITE ${OUTPUT} "${rows}")
