// What models reach on calls whose counters a file has: the errors of some figures, and bounds on them.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "measured_rows.h"

namespace attest {

class Reached {
 public:
  /// A column of the file, and what is reached, in per cent, rounded up.
  struct Figure {
    const char* name;
    double mean, most;
    double sum = 0, furthest = 0;
  };
  explicit Reached(std::vector<Figure> figures) : figures_(std::move(figures)) {}

  /// A call: what is predicted of each figure, in their order.
  void add(const std::string& call, const std::vector<double>& predicted, const MeasuredRow& row) {
    std::printf("%s:", call.c_str());
    for (std::size_t i = 0; i < figures_.size(); ++i) {
      const double ratio = predicted.at(i) / std::stod(row.at(figures_[i].name)), off = 100 * std::abs(ratio - 1);
      std::printf("  %s %.3f", figures_[i].name, ratio);
      figures_[i].sum += off, figures_[i].furthest = std::max(figures_[i].furthest, off);
    }
    std::printf("\n");
    ++calls_;
  }
  void expect(int calls) const {
    EXPECT_EQ(calls_, calls);
    for (const Figure& f : figures_) {
      std::printf("%s: %.2f / %.2f\n", f.name, f.sum / calls_, f.furthest);
      EXPECT_LE(f.sum / calls_, f.mean) << f.name;
      EXPECT_LE(f.furthest, f.most) << f.name;
    }
  }

 private:
  std::vector<Figure> figures_;
  int calls_ = 0;
};

}  // namespace attest
