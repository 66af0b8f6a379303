//===- team_test.cpp - The threads of one replica -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/team.h"

#include <catch2/catch.hpp>

#include <numeric>
#include <stdexcept>
#include <string>

using namespace drt;

TEST_CASE("the members of a team do every part of every piece of work, and only together") {
  for (int members : {1, 2, 3, 5})
    for (int spins : {0, 100}) {
      Team team(members, spins, [](int) {});
      std::vector<int> begun(static_cast<size_t>(team.size()));
      for (int piece = 1; piece <= 200; ++piece) {
        team.run([&](int member) { ++begun[static_cast<size_t>(member)]; });
        // All are done, and seen to be.
        REQUIRE(begun == std::vector<int>(begun.size(), piece));
      }
    }
}

TEST_CASE("parts of a team cover everything once, and none is below the grain") {
  for (int64_t count : {1, 2, 7, 64, 1000, 4097, 100003})
    for (int64_t grain : {1, 3, 64, 5000})
      for (int members : {1, 2, 3, 8}) {
        int64_t at = 0;
        for (int member = 0; member < members; ++member) {
          const Range part = Team::part(count, grain, members, member);
          if (part.empty())
            continue;
          REQUIRE(part.begin == at);
          REQUIRE((part.size() >= std::min(grain, count) / 2));
          at = part.end;
        }
        REQUIRE(at == count);
      }
}

TEST_CASE("what a member throws reaches whoever asked, when all are done") {
  Team team(3, 0, [](int) {});
  for (int thrower : {0, 1, 2}) {
    std::atomic<int> done = 0;
    CHECK_THROWS_WITH(team.run([&](int member) {
      ++done;
      if (member == thrower)
        throw std::runtime_error("member " + std::to_string(member));
    }),
                      "member " + std::to_string(thrower));
    CHECK(done.load() == 3);
    team.run([&](int) { ++done; });
    CHECK(done.load() == 6);
  }
}
