#include "attest/simulator/backward_executor.h"

#include <algorithm>
#include <limits>

#include "attest/simulator/tile_math.h"

namespace attest {
namespace {

using Kind = BackwardStep::Kind;
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr BackwardTile tiles[] = {BackwardTile::q, BackwardTile::dout, BackwardTile::lse,
                                  BackwardTile::d, BackwardTile::k,    BackwardTile::v,
                                  BackwardTile::p, BackwardTile::ds,   BackwardTile::dq};

}  // namespace

BackwardWorkspace::BackwardWorkspace(std::int64_t statistics_rows, std::int64_t query_rows, int headdim)
    : columns(headdim),
      d(static_cast<std::size_t>(statistics_rows), nan),
      dq(static_cast<std::size_t>(query_rows) * static_cast<std::size_t>(headdim), nan) {}

BackwardExecutor::BackwardExecutor(const BackwardBehaviour& behaviour, Dtype dtype)
    : behaviour_(behaviour), plan_(behaviour.plan()), dtype_(dtype) {
  for (const BackwardTile x : tiles) {
    auto& slots = smem_[static_cast<std::size_t>(plan_.place_of(x))];
    slots.resize(static_cast<std::size_t>(plan_.slots(x)));
    const std::size_t size = std::size_t(plan_.rows(x)) * std::size_t(plan_.columns(x));
    for (auto& slot : slots) slot.resize(std::max(slot.size(), size));
  }
  warps_.resize(static_cast<std::size_t>(plan_.num_warps));
  const std::size_t pairs = std::size_t(plan_.rows_per_warp()) * std::size_t(plan_.tile_n);
  for (Warp& warp : warps_) {
    for (auto* x : {&warp.p, &warp.dp, &warp.slopes}) x->resize(pairs);
    warp.dk.resize(std::size_t(plan_.keys_per_warp()) * std::size_t(plan_.columns(BackwardTile::dk)));
    warp.dv.resize(std::size_t(plan_.keys_per_warp()) * std::size_t(plan_.columns(BackwardTile::dv)));
  }
  const int widest = std::max({plan_.tile_n, plan_.columns(BackwardTile::dk), plan_.columns(BackwardTile::dv)});
  row_.resize(static_cast<std::size_t>(widest));
  other_row_.resize(static_cast<std::size_t>(widest));
}

void BackwardExecutor::run(const BackwardProgram& program, const BackwardCta& cta) {
  if (is_empty(program)) return;
  program_ = &program;
  cta_ = &cta;
  for (auto& slots : smem_)
    for (auto& slot : slots) std::fill(slot.begin(), slot.end(), nan);
  for (Warp& warp : warps_) warp.copies.clear();
  run_warps(program, [this](const auto& step, int w) { execute(step, w); });
}

void BackwardExecutor::execute(const BackwardStep& step, int w) {
  Warp& warp = warps_[static_cast<std::size_t>(w)];
  const int keys = plan_.keys_per_warp(), n = plan_.tile_n;
  switch (step.kind) {
    case Kind::clear:
      std::fill(warp.dk.begin(), warp.dk.end(), 0.0f);
      std::fill(warp.dv.begin(), warp.dv.end(), 0.0f);
      return;
    case Kind::copy:
      copy_poison(step, w);
      warp.copies.add(step);
      return;
    case Kind::commit:
      return warp.copies.commit();
    case Kind::wait:
      return warp.copies.wait(step.slot, [this, w](const BackwardStep& copy) { land(copy, w); });
    case Kind::scores:
      return scores(step, warp, w);
    case Kind::modify:
      return modify(step, warp, w);
    case Kind::mask:
      return mask(step, warp, w);
    case Kind::probabilities:
      return probabilities(step, warp, w);
    case Kind::dprobabilities:
      return dprobabilities(step, warp, w);
    case Kind::dscores:
      return dscores(step, warp, w);
    case Kind::add_dbias:
      return add_dbias(step, warp, w);
    case Kind::put:
      return put(warp, w);
    case Kind::add_dv:
      return tile_math::add_transposed_multiple(tile(BackwardTile::p, 0) + std::ptrdiff_t{w} * keys, n,
                                                tile(BackwardTile::dout, step.slot), plan_.columns(BackwardTile::dout),
                                                plan_.tile_m, keys, plan_.columns(BackwardTile::dv), warp.dv.data(),
                                                plan_.columns(BackwardTile::dv));
    case Kind::put_dq:
      return put_dq(w);
    case Kind::add_dq:
      return add_dq(step, w);
    case Kind::add_dk:
      return tile_math::add_transposed_multiple(tile(BackwardTile::ds, 0) + std::ptrdiff_t{w} * keys, n,
                                                tile(BackwardTile::q, step.slot), plan_.columns(BackwardTile::q),
                                                plan_.tile_m, keys, plan_.columns(BackwardTile::dk), warp.dk.data(),
                                                plan_.columns(BackwardTile::dk));
    case Kind::stage:
      return stage(warp, w);
    case Kind::store:
      return store_tile(step, w);
    case Kind::row_products:
      return row_products(step, w);
    case Kind::sink_gradient:
      return sink_gradient(step, w);
    case Kind::convert:
      return convert(step, w);
    case Kind::barrier:
      return;
  }
}

}  // namespace attest
