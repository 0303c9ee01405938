// Measures an SM's pipes, key tiles of attention, how CTAs drift apart, copies, local memory in L1 and launches:
// DIR/NAME.rows.csv for each experiment named, as run.py expects it.
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <string>

#include "attest/hardware/contention.h"
#include "attest/hardware/device.h"
#include "attest/hardware/drift.h"
#include "attest/hardware/launches.h"
#include "attest/hardware/pipes.h"
#include "attest/hardware/placement.h"
#include "copies.h"
#include "gates.h"
#include "in_step.h"
#include "latencies.h"
#include "local.h"
#include "step.h"
#include "waits.h"

namespace {

using namespace attest::hardware;

void print_pipes(std::ostream& rows) {
  for (const PipeRate& r : measure_pipes())
    rows << r.kind << ',' << r.warps_a_scheduler << ',' << r.chains << ',' << r.cycles << '\n';
}

void print_beside_products(std::ostream& rows) {
  for (const RateBesideProducts& r : measure_beside_products())
    rows << r.kind << ',' << r.products << ',' << r.cycles << ',' << r.products_cycles << '\n';
}

void print_beside_mma(std::ostream& rows) {
  for (const RateBesideMma& r : measure_beside_mma())
    rows << r.kind << ',' << r.products << ',' << r.alone << ',' << r.beside << ',' << r.of_product << '\n';
}

void print_fetch(std::ostream& rows) {
  for (const FetchRate& r : measure_fetch())
    rows << r.instructions << ',' << r.skips << ',' << r.warps_a_scheduler << ',' << r.apart << ',' << r.cycles << '\n';
}

void print_fetch_of_streams(std::ostream& rows) {
  for (const FetchOfStreams& r : measure_fetch_of_streams())
    rows << r.instructions << ',' << r.chains << ',' << r.sms << ',' << r.warps_a_scheduler << ',' << r.streams << ','
         << r.cycles << ',' << r.at_first << '\n';
}

void print_walked_code(std::ostream& rows) {
  for (const WalkedCode& r : measure_walked_code())
    rows << r.instructions << ',' << r.sms << ',' << r.turns << ',' << r.apart << ',' << r.cycles << ','
         << r.round_cycles << '\n';
}

void print_jumps(std::ostream& rows) {
  for (const JumpTime& r : measure_jumps())
    rows << r.block << ',' << r.skipped << ',' << r.blocks << ',' << r.warps_a_scheduler << ',' << r.straight << ','
         << r.uniform << ',' << r.reconverging << '\n';
}

void print_wgmma(std::ostream& rows) {
  for (const ProductsTime& r : measure_wgmma())
    rows << r.columns << ',' << r.a << ',' << r.warpgroups << ',' << r.products << ',' << r.cycles << '\n';
}

void print_contention(std::ostream& rows) {
  for (const ContentionRow& r : measure_contention())
    rows << r.part << ',' << r.tile_n << ',' << r.warpgroups << ',' << r.columns << ',' << r.a << ',' << r.alone << ','
         << r.beside << ',' << r.product_alone << ',' << r.product_beside << '\n';
}

void print_issue(std::ostream& rows) {
  for (const IssueRow& r : measure_issue())
    rows << r.tile_n << ',' << r.headdim << ',' << r.p_in_smem << ',' << r.issued << ',' << r.scores << ',' << r.output
         << '\n';
}

// for a profiler to time
void launch_waiting(std::ostream& rows) {
  int smem = 0;
  check(cudaDeviceGetAttribute(&smem, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  const WaitingLaunches launches(smem, true);
  for (const WaitingLaunch& l : launches.all()) {
    launches.launch(l, nullptr);
    check(cudaDeviceSynchronize());
    rows << l.threads << ',' << l.smem_bytes << ',' << l.ctas_an_sm << ',' << l.cluster << ',' << l.waves << ','
         << l.ctas << ',' << l.wait_cycles << '\n';
  }
}

void measure_steps(std::ostream& rows) {
  for (const StepRun& run : step_runs()) rows << run.name() << ',' << run_step(run).cycles << '\n';
}

void measure_moments(std::ostream& rows) {
  for (const StepRun& run : step_runs()) {
    if (run.parts != kWholeStep || !run.overlap) continue;
    const StepTimes times = run_step(run);
    for (std::size_t g = 0; g < times.moments.size(); ++g)
      for (std::size_t t = 0; t < times.moments[g].size(); ++t) {
        rows << run.name() << ',' << g << ',' << t;
        for (const long long m : times.moments[g][t]) rows << ',' << m;
        rows << '\n';
      }
  }
}

void print_drift(std::ostream& rows) {
  constexpr int most = 1024;  // CTAs of a launch, which then all read one head
  constexpr struct {
    const char* name;
    DriftSource source;
  } sources[] = {{"none", {0, 1}},
                 {"l2", {most, 64}},
                 {"l2", {8, 12}},
                 {"l2", {1, 2}},
                 {"dram", {most, drift_tiles, true}},
                 {"dram", {8, drift_tiles, true}},
                 {"dram", {22, drift_tiles, true}},
                 {"none", {0, 1, false, 20}},
                 {"dram", {22, drift_tiles, true, 20}}};
  constexpr int repeats = 2;
  const std::vector<SmPlace> places = locate_sms();
  DriftBench bench;
  for (const DriftKernel& k : drift_kernels())
    for (const auto& [name, source] : sources) {
      if (k.query_bytes == 0 && source.keys_a_query < drift_tiles) continue;
      const std::vector<std::vector<DriftCta>> launches = bench.measure(k, source, repeats);
      for (int repeat = 0; repeat < repeats; ++repeat)
        for (std::size_t cta = 0; cta < launches[repeat].size(); ++cta) {
          const DriftCta& c = launches[repeat][cta];
          for (int t = 0; t < drift_tiles; ++t)
            rows << k.matrix << ',' << k.tile_n << ',' << k.headdim << ',' << k.warpgroups << ',' << k.turns << ','
                 << source.share << ',' << name << ',' << source.keys_a_query << ',' << repeat << ',' << cta << ','
                 << c.sm << ',' << places[c.sm].gpc << ',' << c.mhz << ',' << t << ',' << c.tiles[t].asked << ','
                 << c.tiles[t].asked_v << ',' << c.tiles[t].ended << '\n';
        }
    }
}

struct Experiment {
  std::string name, columns;
  std::function<void(std::ostream&)> run;
};

const Experiment experiments[] = {
    {"pipes", "kind,warps_a_scheduler,chains,cycles", print_pipes},
    {"latencies", "kind,chains,between,cycles", measure_latencies},
    {"beside", "kind,products,cycles,products_cycles", print_beside_products},
    {"beside_mma", "kind,products,alone,beside,of_product", print_beside_mma},
    {"fetch", "instructions,skips,warps_a_scheduler,apart,cycles", print_fetch},
    {"fetch_of_streams", "instructions,chains,sms,warps_a_scheduler,streams,cycles,at_first", print_fetch_of_streams},
    {"walked_code", "instructions,sms,turns,apart,cycles,round_cycles", print_walked_code},
    {"jumps", "block,skipped,blocks,warps_a_scheduler,straight,uniform,reconverging", print_jumps},
    {"wgmma", "columns,a,warpgroups,products,cycles", print_wgmma},
    {"step", "tile_n,headdim,warpgroups,p_in_smem,overlap,turns,parts,cycles", measure_steps},
    {"step_moments",
     "tile_n,headdim,warpgroups,p_in_smem,overlap,turns,parts,warpgroup,tile,issued,scores,exponentials,output,end",
     measure_moments},
    {"copy", "kind,bytes,stages,sms,source,cycles,deviation", measure_copies},
    {"drift",
     "matrix,tile_n,headdim,warpgroups,turns,share,source,keys_a_query,repeat,cta,sm,gpc,mhz,tile,asked,asked_v,ended",
     print_drift},
    {"local",
     "order,bytes,words,warps,ctas_an_sm,sms,smem_kib,set_aside,turns,lag,in_step,beside,lines_a_word,row_bytes,cycles",
     measure_local},
    {"waits", "row_bytes,ctas,share,slices,between,around,source,turn,deviation,longest", measure_waits},
    {"gates", "kind,slots,products,cycles", measure_gates},
    {"in_step", "stride,copies,warps,cycles", measure_in_step},
    {"contention", "part,tile_n,warpgroups,columns,a,alone,beside,product_alone,product_beside", print_contention},
    {"issue", "tile_n,headdim,p_in_smem,issued,scores,output", print_issue},
    {"launch", "threads,smem,ctas_an_sm,cluster,waves,ctas,wait_cycles", launch_waiting},
};

}  // namespace

int main(int argc, char** argv) {
  try {
    for (int i = 2; i < argc; ++i)
      for (const Experiment& e : experiments) {
        if (e.name != argv[i]) continue;
        std::ofstream rows(std::string(argv[1]) + "/" + e.name + ".rows.csv");
        rows << e.columns << '\n';
        e.run(rows);
      }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sm_probe: %s\n", error.what());
    return 1;
  }
  return 0;
}
