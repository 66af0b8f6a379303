//===- strategy_mutation_test.cpp - Bad strategies give errors, never crashes ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "random_facts.h"
#include "strategies/Builder.h"
#include "strategies/StrategyCheck.h"
#include "strategies/StrategyText.h"
#include <catch2/catch.hpp>

using namespace distc::strategies;

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// Changes a field of a message that is drawn, in a way that is drawn.
class Mutator {
public:
  explicit Mutator(unsigned seed) : random(seed) {}

  int draw(int below) { return static_cast<int>(random() % below); }

  void mutate(Message &message) {
    const auto *descriptor = message.GetDescriptor();
    const FieldDescriptor *field = descriptor->field(draw(descriptor->field_count()));
    const auto *reflection = message.GetReflection();
    if (field->is_repeated())
      return mutateRepeated(message, field);
    if (draw(6) == 0)
      return reflection->ClearField(&message, field);
    switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->SetString(&message, field, drawText(reflection->GetString(message, field)));
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->SetInt32(&message, field, drawNumber());
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection->SetEnumValue(&message, field, drawNumber());
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->SetBool(&message, field, draw(2));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection->SetFloat(&message, field, drawFloat());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return mutate(*reflection->MutableMessage(&message, field));
    default:
      FAIL("no such field: " << field->full_name());
    }
  }

  std::string mutateBytes(std::string bytes) {
    for (int i = 0, count = 1 + draw(4); i < count && !bytes.empty(); ++i) {
      if (draw(3) == 0)
        bytes.erase(draw(bytes.size()), 1 + draw(8));
      else
        bytes[draw(bytes.size())] = static_cast<char>(draw(256));
    }
    return bytes;
  }

private:
  void mutateRepeated(Message &message, const FieldDescriptor *field) {
    const auto *reflection = message.GetReflection();
    int size = reflection->FieldSize(message, field);
    if (size == 0)
      return;
    int item = draw(size);
    bool isMessage = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    switch (draw(4)) {
    case 0:
      return reflection->RemoveLast(&message, field);
    case 1:
      return reflection->SwapElements(&message, field, item, draw(size));
    case 2:
      if (isMessage)
        reflection->AddMessage(&message, field)->CopyFrom(reflection->GetRepeatedMessage(message, field, item));
      else
        reflection->AddString(&message, field, reflection->GetRepeatedString(message, field, item));
      return;
    default:
      if (isMessage)
        mutate(*reflection->MutableRepeatedMessage(&message, field, item));
      else
        reflection->SetRepeatedString(&message, field, item,
                                      drawText(reflection->GetRepeatedString(message, field, item)));
    }
  }

  std::string drawText(const std::string &old) {
    static const char *texts[] = {"",     "ps:0", "ps:99", "ps:-1",          "localhost:CPU:0",
                                  "2",    "1,2",  "2,1",   "1,1,4",          "999999999999999",
                                  "0",    "-3,1", ",,,,",  "layer_0/kernel", "\xff",
                                  "a:b:c"};
    return draw(4) ? texts[draw(std::size(texts))] : old + "x";
  }

  int drawNumber() {
    static const int numbers[] = {0, 1, 2, 3, 5, 7, -1, 100, 101, 102, 1 << 30, INT32_MAX, INT32_MIN};
    return numbers[draw(std::size(numbers))];
  }

  float drawFloat() {
    static const float numbers[] = {0, 0.5f, 1, 2, -1, NAN, INFINITY};
    return numbers[draw(std::size(numbers))];
  }

  std::mt19937 random;
};

/// Checks, and where nothing is wrong uses it.
bool isAccepted(const Strategy &strategy, const GraphFacts &facts, const Resources &resources) {
  std::vector<std::string> remarks;
  if (llvm::Error error = checkStrategy(strategy, facts, resources, remarks)) {
    REQUIRE(llvm::toString(std::move(error)) != "");
    return false;
  }
  llvm::consumeError(checkNative(strategy));
  std::string text;
  llvm::raw_string_ostream os(text);
  printTables(strategy, facts, resources, os);
  printDifferences(strategy, {}, os);
  return true;
}

} // namespace

TEST_CASE("mutated strategies are accepted or give an error") {
  int accepted = 0, refused = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    INFO("seed " << seed);
    GraphFacts facts = makeRandomFacts(seed % 50);
    Resources resources = Resources::local(1 + seed % 4, 3);
    const Builder &builder = getBuilders()[seed % getBuilders().size()];
    Strategy strategy = llvm::cantFail(buildStrategy(builder.name, facts, resources));
    Mutator mutator(seed);
    for (int i = 0, count = 1 + mutator.draw(3); i < count; ++i)
      mutator.mutate(strategy);
    ++(isAccepted(strategy, facts, resources) ? accepted : refused);
  }
  // Both happen, or the test tests nothing.
  CHECK(accepted > 100);
  CHECK(refused > 100);
}

TEST_CASE("strategies of mutated bytes are read or give an error") {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    INFO("seed " << seed);
    GraphFacts facts = makeRandomFacts(seed % 50);
    Resources resources = Resources::local(2, 3);
    const Builder &builder = getBuilders()[seed % getBuilders().size()];
    Strategy strategy = llvm::cantFail(buildStrategy(builder.name, facts, resources));
    Mutator mutator(seed);
    std::string bytes = mutator.mutateBytes(seed % 2 ? printStrategy(strategy) : strategy.SerializeAsString());
    StrategyLines lines;
    llvm::Expected<Strategy> read = parseStrategy(bytes, "bytes", &lines);
    if (read)
      isAccepted(*read, facts, resources);
    else
      REQUIRE(llvm::toString(read.takeError()) != "");
  }
}
