//===- Signature.cpp - What the arguments and results of a training step are ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/stablehlo/Signature.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"

namespace distc::stablehlo {

namespace json = llvm::json;

static llvm::Error fail(const llvm::Twine &what) { return llvm::createStringError(what); }

/// A name of a node, as TensorFlow has them, so that it may be exported and is a name in a checkpoint.
static bool isName(llvm::StringRef name) {
  return !name.empty() && (llvm::isAlnum(name[0]) || name[0] == '.' || name[0] == '_') &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || llvm::StringRef("_./-\\").contains(c); });
}

/// Entry `number` of the list `list`, and its name, which no other has.
static llvm::Expected<const json::Object *> getEntry(const json::Value &value, llvm::StringRef list, size_t number,
                                                     llvm::StringSet<> &names, std::string &name) {
  const json::Object *entry = value.getAsObject();
  std::optional<llvm::StringRef> text = entry ? entry->getString("name") : std::nullopt;
  if (!text || !isName(*text))
    return fail("entry " + llvm::Twine(number) + " of \"" + list + "\" has no \"name\" of letters, digits and _ . / -");
  if (!names.insert(*text).second)
    return fail("the name \"" + *text + "\" is there twice");
  name = text->str();
  return entry;
}

llvm::Expected<Signature> Signature::parse(llvm::MemoryBufferRef buffer) {
  llvm::Expected<json::Value> root = json::parse(buffer.getBuffer());
  if (!root)
    return root.takeError();
  const json::Object *object = root->getAsObject();
  if (!object || object->getInteger("version") != 1)
    return fail("is no signature of version 1");
  Signature signature;
  llvm::StringSet<> names;
  const json::Array *arguments = object->getArray("arguments");
  if (!arguments)
    return fail("has no list \"arguments\"");
  for (auto [number, value] : llvm::enumerate(*arguments)) {
    Argument argument;
    llvm::Expected<const json::Object *> entry = getEntry(value, "arguments", number, names, argument.name);
    if (!entry)
      return entry.takeError();
    auto role = llvm::StringSwitch<std::optional<Role>>((*entry)->getString("role").value_or(""))
                    .Case("state", Role::State)
                    .Case("batch", Role::Batch)
                    .Case("feed", Role::Feed)
                    .Default(std::nullopt);
    if (!role)
      return fail("argument \"" + argument.name + "\" has a \"role\" that is none of state, batch, feed");
    argument.role = *role;
    argument.result = (*entry)->getInteger("result");
    if (argument.result && *role != Role::State)
      return fail("argument \"" + argument.name + "\" is no state, so no result replaces it");
    signature.arguments.push_back(std::move(argument));
  }
  std::optional<int64_t> loss = object->getInteger("loss");
  if (!loss)
    return fail("does not say which result is the \"loss\"");
  signature.loss = *loss;
  signature.smallestBatch = object->getInteger("smallest_batch").value_or(1);
  signature.batchMultiple = object->getInteger("batch_multiple").value_or(1);
  if (signature.batchMultiple < 1 || signature.batchMultiple > INT32_MAX)
    return fail("has a \"batch_multiple\" that is no number from 1 to 2^31 - 1");
  if (const json::Array *fetches = object->getArray("fetches"))
    for (auto [number, value] : llvm::enumerate(*fetches)) {
      Fetch fetch;
      llvm::Expected<const json::Object *> entry = getEntry(value, "fetches", number, names, fetch.name);
      if (!entry)
        return entry.takeError();
      std::optional<int64_t> result = (*entry)->getInteger("result");
      if (!result)
        return fail("fetch \"" + fetch.name + "\" does not say which \"result\" it is");
      fetch.result = *result;
      signature.fetches.push_back(std::move(fetch));
    }
  signature.initial = object->getString("initial").value_or("").str();
  return signature;
}

} // namespace distc::stablehlo
