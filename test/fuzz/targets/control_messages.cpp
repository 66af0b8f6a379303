//===- control_messages.cpp - What comes over the control connection -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "fuzz_target.h"

#include "launch/socket.h"

using namespace drt;

std::vector<std::string> seeds() {
  const Message messages[] = {{MessageKind::Hello, {"1", "2", "fingerprint", "127.0.0.1", "challenge", "proof"}},
                              {MessageKind::Ready, {"127.0.0.1", "0 1"}},
                              {MessageKind::Set, {"key", "value"}},
                              {MessageKind::Heartbeat, {"3", "12", "1", "all_reduce 0", "0.5"}},
                              {MessageKind::Lost, {"worker:1", "1", ": no sign of life"}},
                              {MessageKind::Goodbye, {}}};
  std::string all;
  for (const Message &message : messages)
    all += message.encode();
  return {"\x01" + messages[0].encode(), "\x10" + all, "\x80" + messages[3].encode()};
}

/// The first byte says how many bytes arrive at once. What is read says the same when it is sent again.
void readBytes(std::string_view bytes) {
  if (bytes.empty())
    return;
  const auto piece = static_cast<size_t>(static_cast<uint8_t>(bytes[0])) + 1;
  MessageReader reader(1 << 16);
  for (bytes.remove_prefix(1); !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    reader.append(bytes.data(), std::min(piece, bytes.size()));
    while (auto message = reader.next()) {
      MessageReader again;
      const std::string encoded = message->encode();
      again.append(encoded.data(), encoded.size());
      const auto same = again.next();
      if (!same || same->kind != message->kind || same->fields != message->fields)
        __builtin_trap();
    }
  }
}
