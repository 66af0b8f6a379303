//===- served_requests.cpp - What replicas of other tasks ask a server for ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "fuzz_target.h"

#include "drt/drt.h"
#include "servers/remote_parameter_server.h"

using namespace drt;

namespace {

/// A request as it lies on the wire: wish, replica, version.
std::string request(int32_t wish, int32_t replica, int64_t version) {
  std::string bytes(16, '\0');
  std::memcpy(bytes.data(), &wish, 4);
  std::memcpy(bytes.data() + 4, &replica, 4);
  std::memcpy(bytes.data() + 8, &version, 8);
  return bytes;
}
enum { Pull, TokenAndPull, Push, Update, Leave };

/// The other end says what the input has, and is gone behind it.
class Input final : public Channel {
public:
  Input(std::string_view bytes, LocalParameterServer &server) : bytes_(bytes), server_(server) {}

  void send(const std::vector<Piece> &pieces) override {
    for (const Piece &piece : pieces)
      for (int64_t i = 0; i < piece.bytes; ++i)
        sent_ += static_cast<uint8_t>(piece.data[i]);
  }
  void receive(const std::vector<Piece> &pieces) override {
    if (static_cast<size_t>(bytes_of(pieces)) > bytes_.size())
      throw Error("the other end is gone");
    dontWait(pieces);
    for (const Piece &piece : pieces) {
      std::memcpy(piece.data, bytes_.data(), static_cast<size_t>(piece.bytes));
      bytes_.remove_prefix(static_cast<size_t>(piece.bytes));
    }
  }
  bool reads_in_place() const override { return false; }

private:
  /// Nobody else is there whose gradient could end a wait: the server stops first.
  void dontWait(const std::vector<Piece> &pieces) {
    int32_t said[2];
    if (pieces.size() != 1 || pieces[0].bytes != 16)
      return;
    std::memcpy(said, bytes_.data(), sizeof said);
    const bool isReplica = said[1] >= 0 && said[1] < server_.config().replicas;
    if (said[0] == Update || (said[0] == TokenAndPull && isReplica && !server_.hasToken(said[1])))
      server_.stop();
  }

  std::string_view bytes_;
  LocalParameterServer &server_;
  uint64_t sent_ = 0; // reads every byte, so that one that nobody has written is seen
};

} // namespace

std::vector<std::string> seeds() {
  const std::string gradients(8 + 4 + 4, '\x3f'); // of both variables, and the report
  const std::string steps = request(Pull, 0, 0) + request(Push, 0, 0) + gradients + request(TokenAndPull, 0, 0) +
                            request(Push, 1, 1) + gradients + request(Update, 0, 0) + request(Leave, 0, 0);
  return {std::string("\0", 1) + steps, "\x01" + steps, "\x02" + steps};
}

/// The first byte says by which policy gradients become updates.
void readBytes(std::string_view bytes) {
  if (bytes.empty())
    return;
  const drt_gradient gradients[] = {{"v", DRT_F32, DRT_REDUCE_MEAN, 2}, {"w", DRT_F32, DRT_REDUCE_SUM, 1}};
  const int64_t pulled[] = {0, 1};
  drt_servers servers = {};
  servers.policy = static_cast<uint8_t>(bytes[0]) % 3;
  servers.required = servers.policy == DRT_SERVE_ASYNC ? 1 : 2;
  servers.staleness = servers.policy == DRT_SERVE_BOUNDED ? 1 : 0;
  servers.num_gradients = 2;
  servers.gradients = gradients;
  servers.num_pulled = 2;
  servers.pulled = pulled;

  float v[2] = {}, w[1] = {};
  LocalServerConfig config;
  config.servers = &servers;
  config.replicas = 2;
  config.variables = {{v, sizeof v}, {w, sizeof w}};
  config.reportBytes = 4;
  LocalParameterServer *local = nullptr;
  config.update = [&] {
    float taken[2][2];
    void *const results[] = {taken[0], taken[1]};
    local->take(results);
    v[0] -= taken[0][0];
    w[0] -= taken[1][0];
    return true;
  };
  LocalParameterServer server(config);
  local = &server;
  for (int i = 0; i < 64; ++i)
    server.allowUpdate();
  const ServedSizes sizes = {&servers, {sizeof v, sizeof w}, 4};
  Input input(bytes.substr(1), server);
  answer(server, input, sizes, 0);
}
