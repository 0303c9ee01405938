#include "coalescer.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

constexpr int gpcs = 8;

TEST(Coalescer, MergesFourOfAGpcWithinTheWindowOfL2) {
  const Coalescer coalescer(gpcs);
  Coalescer::Tile tile;
  EXPECT_EQ(coalescer.ask(tile, 0, 1000, 0), 1);
  EXPECT_EQ(coalescer.ask(tile, 1, 1000, 0), 1);  // another GPC asks for itself
  EXPECT_EQ(coalescer.ask(tile, 0, 1060, 0), 0);
  EXPECT_EQ(coalescer.ask(tile, 0, 1060, 0), 0);
  EXPECT_EQ(coalescer.ask(tile, 0, 1060, 0), 0);
  EXPECT_EQ(coalescer.ask(tile, 0, 1060, 0), 1);  // the fifth
  EXPECT_EQ(coalescer.ask(tile, 0, 1121, 0), 1);  // too late for it
}

// Lines that DRAM sends are under way for all GPCs from the first request on, whoever sent it.
TEST(Coalescer, WhatComesFromDramIsUnderWayUntilItIsThere) {
  const Coalescer coalescer(gpcs);
  Coalescer::Tile tile;
  EXPECT_EQ(coalescer.ask(tile, 0, 1000, 0.25), 1);
  EXPECT_EQ(coalescer.ask(tile, 0, 1300, 0), 0.75);  // but for what L2 had, whose request is done
  EXPECT_EQ(coalescer.ask(tile, 1, 1200, 0), 1);
  EXPECT_EQ(coalescer.ask(tile, 1, 1430, 0), 0.75);
  EXPECT_EQ(coalescer.ask(tile, 1, 1431, 0), 1);
  EXPECT_EQ(coalescer.ask(tile, 1, 1600, 0), 1);  // nothing is under way any more
  EXPECT_EQ(coalescer.ask(tile, 2, 2000, 0.25), 1);
  EXPECT_EQ(coalescer.ask(tile, 3, 2300, 0.25), 1);  // who lacks it meanwhile does not begin anew
  EXPECT_EQ(coalescer.ask(tile, 3, 2430, 0), 0.75);
  EXPECT_EQ(coalescer.ask(tile, 3, 2431, 0), 1);
}

}  // namespace
}  // namespace attest
