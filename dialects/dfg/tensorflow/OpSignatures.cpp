//===- OpSignatures.cpp - TensorFlow's definitions of its operations ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/OpSignatures.h"
#include "dialects/dfg/tensorflow/Types.h"
#include "llvm/ADT/SmallVector.h"

using llvm::StringRef;

namespace distc::tf {

static constexpr llvm::StringLiteral kSignatures =
#include "dialects/dfg/tensorflow/OpSignatures.inc"
    ;

OpSignatures::OpSignatures() {
  StringRef rest = kSignatures;
  auto [first, lines] = rest.split('\n');
  first.consume_front("producer ");
  first.getAsInteger(10, producer);
  for (rest = lines; !rest.empty();) {
    auto [line, next] = rest.split('\n');
    entries[line.split(' ').first.rtrim('!')].line = line;
    rest = next;
  }
}

static void parseArgument(StringRef text, OpDef::ArgDef &arg) {
  auto [name, kind] = text.split(':');
  arg.set_name(name.str());
  arg.set_is_ref(kind.consume_front("&"));
  if (auto [count, element] = kind.split('*'); !count.empty() && !element.empty()) {
    arg.set_number_attr(count.str());
    kind = element;
  }
  if (kind.consume_front("*"))
    arg.set_type_list_attr(kind.str());
  else if (kind.consume_front("$"))
    arg.set_type_attr(kind.str());
  else
    arg.set_type(getDataTypeByName(kind));
}

static void parseValue(StringRef kind, StringRef text, AttrValue &value) {
  int64_t number = 0;
  if (kind == "type") {
    value.set_type(getDataTypeByName(text));
  } else if (kind == "int") {
    text.getAsInteger(10, number);
    value.set_i(number);
  } else if (kind == "list(type)") {
    llvm::SmallVector<StringRef> names;
    text.split(names, ',', -1, /*KeepEmpty=*/false);
    for (StringRef name : names)
      value.mutable_list()->add_type(getDataTypeByName(name));
  } else if (kind.starts_with("list(")) {
    value.mutable_list();
  } else {
    value.set_s("");
  }
}

static void parseAllowed(StringRef kind, StringRef text, AttrValue &allowed) {
  llvm::SmallVector<StringRef> names;
  text.split(names, ',');
  for (StringRef name : names)
    if (kind.contains("type"))
      allowed.mutable_list()->add_type(getDataTypeByName(name));
    else
      allowed.mutable_list()->add_s(name.str());
}

static void parseAttribute(StringRef text, OpDef::AttrDef &attr) {
  auto [name, kind] = text.split(':');
  attr.set_name(name.str());
  size_t end = kind.find_first_of(">{=");
  StringRef rest = kind.substr(std::min(end, kind.size()));
  kind = kind.take_front(end);
  attr.set_type(kind.str());
  if (rest.consume_front(">=")) {
    int64_t minimum = 0;
    rest.consumeInteger(10, minimum);
    attr.set_has_minimum(true);
    attr.set_minimum(minimum);
  }
  if (rest.consume_front("{")) {
    auto [allowed, after] = rest.split('}');
    parseAllowed(kind, allowed, *attr.mutable_allowed_values());
    rest = after;
  }
  if (rest.consume_front("="))
    parseValue(kind, rest, *attr.mutable_default_value());
}

static std::unique_ptr<OpDef> parseLine(StringRef line) {
  auto def = std::make_unique<OpDef>();
  llvm::SmallVector<StringRef> words;
  line.split(words, ' ', -1, /*KeepEmpty=*/false);
  def->set_name(words.front().rtrim('!').str());
  def->set_is_stateful(words.front().ends_with("!"));
  enum { Inputs, Outputs, Attributes } part = Inputs;
  for (StringRef word : llvm::ArrayRef(words).drop_front()) {
    if (word == "->")
      part = Outputs;
    else if (word == ";")
      part = Attributes;
    else if (part == Attributes)
      parseAttribute(word, *def->add_attr());
    else
      parseArgument(word, part == Inputs ? *def->add_input_arg() : *def->add_output_arg());
  }
  return def;
}

const OpDef *OpSignatures::find(StringRef op) const {
  auto it = entries.find(op);
  if (it == entries.end())
    return nullptr;
  if (!it->second.def)
    it->second.def = parseLine(it->second.line);
  return it->second.def.get();
}

} // namespace distc::tf
