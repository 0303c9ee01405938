// Counters as files keep them: our CSV there and back, and what ncu leaves.
#include "attest/simulator/measured_call.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "attest/problem/error.h"
#include "attest/simulator/comparison.h"
#include "csv.h"
#include "measured_rows.h"

namespace attest {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::Pair, testing::SizeIs;

MeasuredCall two_launches() {
  MeasuredCall call;
  call.mechanism = "split";
  call.kernel = "sm80";
  call.c.num_splits = 4;
  call.launches = {{"forward<1, 2>(int)", {{"dram__bytes_read.sum", 123456789012}, {"sm__cycles_elapsed.max", 100}}},
                   {"\"combine\"", {{"dram__bytes_read.sum", 0.5}, {"sm__cycles_elapsed.max", 10}}}};
  return call;
}

std::string csv_of(const std::vector<MeasuredCall>& calls) {
  MeasuredFile measured;
  measured.comments = {"of a test"}, measured.calls = calls;
  return to_csv(measured);
}

std::string message_of(const std::string& text) {
  try {
    measured_from_csv(text, "panel.csv");
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(MeasuredCall, CsvComesBackAsItWas) {
  MeasuredCall other = two_launches();
  other.kernel = "./libmine.so";
  other.c.problem.batch = 3;
  other.launches.resize(1);
  other.launches[0].counters.erase("dram__bytes_read.sum");
  MeasuredFile written;
  written.how.gpu = "NVIDIA H200", written.how.via = Profiler::ncu;
  written.comments = {"H200, cold", "how"}, written.calls = {two_launches(), other};
  const MeasuredFile read = measured_from_csv(to_csv(written), "panel.csv");
  EXPECT_EQ(read.how, written.how);
  EXPECT_THAT(read.comments, ElementsAre("H200, cold", "how"));
  ASSERT_EQ(read.calls.size(), 2u);
  EXPECT_EQ(read.calls[0].line, 6u);
  EXPECT_EQ(read.calls[1].line, 8u);
  EXPECT_EQ(read.calls[0].mechanism, "split");
  EXPECT_EQ(read.calls[0].c, two_launches().c);
  EXPECT_EQ(read.calls[1].c, other.c);
  ASSERT_EQ(read.calls[0].launches.size(), 2u);
  EXPECT_EQ(read.calls[0].launches[0].function, "forward<1, 2>(int)");
  EXPECT_EQ(read.calls[0].launches[1].function, "\"combine\"");
  EXPECT_EQ(read.calls[0].launches[0].counters, two_launches().launches[0].counters);
  EXPECT_THAT(read.calls[1].launches[0].counters, ElementsAre(Pair("sm__cycles_elapsed.max", 100)));
}

TEST(MeasuredCall, CountsOfACallStandTogether) {
  MeasuredCall other = two_launches(), fewer = two_launches(), of_another_mechanism = two_launches(),
               again = two_launches();
  other.c.problem.batch = 3;
  fewer.launches.resize(1);
  of_another_mechanism.mechanism = "gqa";
  again.launches[0].counters = {{"dram__bytes_read.sum", 123456789014}};
  const auto calls = counts_by_call({two_launches(), other, fewer, again, of_another_mechanism, other});
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_THAT(calls, ElementsAre(SizeIs(2), SizeIs(2), SizeIs(1), SizeIs(1)));
  EXPECT_EQ(calls[1][1].c, other.c);
  const MeasuredCall mean = mean_of(calls[0]);
  ASSERT_EQ(mean.launches.size(), 2u);
  EXPECT_THAT(mean.launches[0].counters, ElementsAre(Pair("dram__bytes_read.sum", 123456789013)))
      << "cycles are not of both";
  EXPECT_EQ(mean.launches[1].counters, two_launches().launches[1].counters);
}

TEST(MeasuredCall, AKernelThatIsNobodysIsRefused) {
  const auto said = [](const std::string& kernel) {
    return message_of("mechanism,kernel,case,launch,function,dram__bytes_read.sum\nm," + kernel +
                      ",\"{\"\"headdim\"\":128}\",0,f,1\n");
  };
  for (const std::string kernel : {"", "sm8O", "cpu", "sm80-nothing"})
    EXPECT_EQ(said(kernel), "panel.csv: line 2: '" + kernel +
                                "' is none of sm80, sm80-no-swizzle, sm80-sync-copies, sm80-no-skip, sm80-spill, "
                                "unfused, nor a plug-in's path");
  for (const char* kernel : {"sm80", "sm80-no-skip", "./mine.so", "mine.so:fast", "build/mine"})
    EXPECT_EQ(said(kernel), "") << kernel;
}

TEST(MeasuredCall, ACallThatItsKernelDoesNotTakeIsRefused) {
  const std::string head = "mechanism,kernel,case,launch,function,dram__bytes_read.sum\nm,sm80,{},0,f,1\n";
  EXPECT_EQ(message_of(head + "m,sm80-no-skip,{},0,f,1\n"),
            "panel.csv: line 3: headdim: 64 is outside 97 to 128, and kernel sm80-no-skip takes nothing else");
  EXPECT_EQ(message_of(head + "m,./mine.so,\"{\"\"dtype\"\":\"\"fp32\"\"}\",0,f,1\n"), "");
}

TEST(MeasuredCall, AFileWithoutACounterThatIsReadIsRefused) {
  const std::string row = "\nm,sm80,{},0,f,1", words = "mechanism,kernel,case,launch,function";
  EXPECT_EQ(message_of(words + ",a.sum" + row + "\n"),
            "panel.csv: line 1: 'a.sum' is no counter that attest reads, nor is another column, as "
            "dram__bytes_read.sum is");
  EXPECT_EQ(message_of(words + ",a.sum,launch__grid_size" + row + ",1\n"), "");
}

// However its case and its numbers are written.
TEST(MeasuredCall, ALaunchThatIsThereTwiceIsRefused) {
  const std::string head = "mechanism,kernel,case,launch,function,sm__cycles_elapsed.max\n",
                    line = "m,sm80,{},0,f,70\n";
  const std::string why =
      "panel.csv: line 3: 'm, sm80, launch 0' is line 2 once more, sm__cycles_elapsed.max and all; "
      "remove one of them";
  for (const char* again :
       {"m,sm80,{},0,f,70\n", "m,sm80,{},0,f,70.0\n", "m,sm80,{ },0,f,7e1\n", "m,sm80,\"{\"\"nheads\"\":1}\",0,f,70\n"})
    EXPECT_EQ(message_of(head + line + again), why) << again;
  for (const char* other : {"m,sm80,{},0,f,71\n", "m,./mine.so,{},0,f,70\n", "m,sm80,\"{\"\"nheads\"\":2}\",0,f,70\n"})
    EXPECT_EQ(message_of(head + line + other), "") << other;
}

TEST(MeasuredCall, AProfilersDirtyLinesAreAsManyAsMeasured) {
  // kernels that write nothing and read 128 MiB at the end, a row a launch; runs differ by 0.2 MiB
  MeasuredCall call;
  double written = 0;
  int calls = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_L2 "/counted_chain.csv")) {
    if (!row.at("name").ends_with("reads") && (row.at("name") != "read" || std::stoi(row.at("read_mib")) < 128))
      continue;
    written += std::stod(row.at("dram__bytes_write.sum"));
    call.launches.resize(std::stoul(row.at("launches")));
    if (std::stoul(row.at("launch")) + 1 < call.launches.size()) continue;
    EXPECT_NEAR(static_cast<double>(call.dirty_bytes_before(Profiler::cupti)), written, 0.25 * (1 << 20))
        << call.launches.size();
    written = 0, ++calls;
  }
  EXPECT_EQ(calls, 16);
  EXPECT_EQ(call.dirty_bytes_before(Profiler::ncu), 9 << 18);
  EXPECT_EQ(call.dirty_bytes_before(std::nullopt), 9 << 18);
}

TEST(MeasuredCall, SumsAreOverAllLaunchesOrThereIsNone) {
  MeasuredCall call = two_launches();
  EXPECT_EQ(call.sum("dram__bytes_read.sum"), 123456789012.5);
  EXPECT_EQ(call.of_longest("dram__bytes_read.sum"), 123456789012);
  std::swap(call.launches[0], call.launches[1]);
  EXPECT_EQ(call.of_longest("sm__cycles_elapsed.max"), 100);
  call.launches[0].counters.erase("dram__bytes_read.sum");
  EXPECT_EQ(call.sum("dram__bytes_read.sum"), std::nullopt);
  EXPECT_EQ(call.sum("no_such_counter"), std::nullopt);
  EXPECT_EQ(MeasuredCall{}.sum("sm__cycles_elapsed.max"), std::nullopt);
}

TEST(MeasuredCall, BadFilesAreRefusedByTheLine) {
  const std::string head = "mechanism,kernel,case,launch,function,dram__bytes_read.sum\n";
  const std::string row = R"(m,sm80,"{""schema"": ""attest/case/1""}",0,f,1)";
  EXPECT_EQ(message_of(head + row + "\n"), "");
  EXPECT_EQ(message_of("hello\n"),
            "panel.csv: line 1: 'hello' is no header, which begins with mechanism,kernel,case,launch,function");
  EXPECT_EQ(message_of("# c\n" + head + "a,b\n"), "panel.csv: line 3: '2 cells' of 6");
  for (const std::string& counter : std::vector<std::string>{"1x", "nan", "inf", "-1", "1e999", "18446744073709551615",
                                                             "18000000000000002048", "1e-300"}) {
    EXPECT_EQ(
        message_of(fmt::format("{}{}{}\n", head, row.substr(0, row.size() - 1), counter)),
        "panel.csv: line 2: '" + counter + "' is neither 0 nor a number from 1e-9 to 1.8e+19, of dram__bytes_read.sum");
  }
  for (const char* counter : {"0", "0.5", "1e-9", "18000000000000000000"})
    EXPECT_EQ(message_of(head + row.substr(0, row.size() - 1) + counter + "\n"), "");
  for (const std::string name : {"sm__cycles_elapsed.max", "gpu__time_duration.sum"})
    EXPECT_EQ(message_of("mechanism,kernel,case,launch,function," + name + "\nm,sm80,{},0,f,0\n"),
              "panel.csv: line 2: '0' is no time that a launch takes, of " + name);
  EXPECT_EQ(message_of(head + row + "\n" + row + "\n"), "") << "it may be counted alike";
  const std::string timed = "m,sm80,{},0,f,7\n";
  EXPECT_EQ(message_of("mechanism,kernel,case,launch,function,sm__cycles_elapsed.max\n" + timed + timed),
            "panel.csv: line 3: 'm, sm80, launch 0' is line 2 once more, sm__cycles_elapsed.max and all; remove one of "
            "them");
  const std::string ns = "m,sm80,{},0,f,4096\n";
  EXPECT_EQ(message_of("mechanism,kernel,case,launch,function,gpu__time_duration.sum\n" + ns + ns), "")
      << "it goes in steps of 32 ns";
  EXPECT_EQ(message_of("mechanism,kernel,case,launch,function\n"),
            "panel.csv: line 1: 'mechanism,kernel,case,launch,function' is a header without a counter's column");
  EXPECT_EQ(message_of(head.substr(0, head.size() - 1) + ",dram__bytes_read.sum\n"),
            "panel.csv: line 1: 'dram__bytes_read.sum' is a column already");
  EXPECT_EQ(message_of(head + "all,sm80,{},0,f,1\n"),
            "panel.csv: line 2: 'all' stands for all mechanisms together, and for none");
  EXPECT_EQ(message_of(head + ",sm80,{},0,f,1\n"),
            "panel.csv: line 2: '' stands for all mechanisms together, and for none");
  EXPECT_EQ(message_of(head + "\xff" + row + "\n"),
            "panel.csv: line 2: mechanism must be UTF-8 without control characters");
  EXPECT_EQ(message_of(head + "m,sm\t80,{},0,f,1\n"),
            "panel.csv: line 2: kernel must be UTF-8 without control characters");
  EXPECT_THAT(message_of(head + "m,sm80,{},nan,f,1\n"), HasSubstr("'nan' is no number of a launch"));
  std::string second = row;
  second.replace(second.find(",0,f"), 4, ",2,f");
  EXPECT_EQ(message_of(head + row + "\n" + second + "\n"),
            "panel.csv: line 3: '2' does not follow the launch before it");
  EXPECT_EQ(message_of(head + second + "\n"), "panel.csv: line 2: '2' does not follow the launch before it");
  EXPECT_THAT(message_of(head + "m,sm80,{},zero,f,1\n"), HasSubstr("'zero' is no number of a launch"));
  EXPECT_EQ(message_of(head + "m,sm80,[],0,f,1\n"), "panel.csv: line 2: case: [] is not a JSON object");
  EXPECT_EQ(message_of(head + R"(m,sm80,"{""batch"":-1}",0,f,1)" + "\n"),
            "panel.csv: line 2: batch: -1 is outside 1 to 1048576");
  EXPECT_EQ(message_of("# \x1b[31m\n" + head), "panel.csv: line 1: a comment must be UTF-8 without control characters");
}

// What a launch can be asked for, on both sides of its limits.
TEST(MeasuredCall, ALaunchThatCannotBeIsRefusedByTheCounter) {
  const auto said = [](const std::string& counter, const std::string& value) {
    return message_of("mechanism,kernel,case,launch,function," + counter + "\nm,sm80,{},0,f," + value + "\n");
  };
  struct Limit {
    std::string counter, limits;
    std::vector<std::string> taken, refused;
  };
  const Limit all[] = {
      {"launch__block_size", "1 to 1024", {"1", "1024"}, {"0", "0.5", "1025", "-32", "31.5", "x"}},
      {"launch__grid_size",
       "1 to 9.22309e+18",
       {"1", "2147483647", "9223090559730712576"},
       {"0", "-4", "2.5", "9223090559730713600", "nan"}},
      {"launch__registers_per_thread", "1 to 255", {"1", "255"}, {"0", "256", "40.25"}},
      {"launch__shared_mem_per_block", "0 to 262144", {"0", "262144"}, {"-1", "262145", "1024.5"}},
  };
  for (const Limit& limit : all) {
    for (const std::string& value : limit.taken) EXPECT_EQ(said(limit.counter, value), "") << limit.counter;
    for (const std::string& value : limit.refused)
      EXPECT_EQ(said(limit.counter, value),
                "panel.csv: line 2: '" + value + "' is no whole number from " + limit.limits + ", of " + limit.counter);
  }
  EXPECT_EQ(said("sm__warps_active.avg.pct_of_peak_sustained_active", "100.5"), "");
}

std::string csv_lines(const std::vector<MeasuredCall>& calls, std::size_t lines) {
  const std::string whole = csv_of(calls);
  std::size_t end = 0;
  for (; lines > 0; --lines) end = whole.find('\n', end) + 1;
  return whole.substr(0, end);
}

std::string csv_line(const MeasuredCall& call, std::size_t launch) {
  const std::string until = csv_lines({call}, 2 + launch), with = csv_lines({call}, 3 + launch);
  return with.substr(until.size());
}

// Wherever it is cut, even inside its last number; what is whole behind the header has whole calls.
TEST(MeasuredCall, AFileThatIsCutOffIsRefused) {
  const std::string whole = csv_of({two_launches()});
  ASSERT_EQ(message_of(whole), "");
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
    if (whole[bytes - 1] == '\n') continue;
    EXPECT_THAT(message_of(whole.substr(0, bytes)), HasSubstr("has no newline behind it; the file is cut off"));
  }
  const std::string missing =
      "panel.csv: line 3: launch '0' ends a call of sm80 that makes 2 launches (num_splits = 4); "
      "launch 1 is missing";
  EXPECT_EQ(message_of(csv_lines({two_launches()}, 3)), missing);
  EXPECT_EQ(message_of(csv_lines({two_launches()}, 3) + "# a comment\n\n"), missing);
  // a launch of another call behind it, and one more than there can be
  MeasuredCall other = two_launches();
  other.c.problem.nheads = 2;
  EXPECT_THAT(message_of(csv_lines({two_launches()}, 3) + csv_line(other, 1)),
              testing::AllOf(HasSubstr("panel.csv: line 4: '{"),
                             HasSubstr("is another case than that of launch 0 of its call")));
  other = two_launches();
  other.kernel = "sm80-no-skip";
  EXPECT_EQ(message_of(csv_lines({two_launches()}, 3) + csv_line(other, 1)),
            "panel.csv: line 4: 'sm80-no-skip' is another kernel than that of launch 0 of its call");
  other = two_launches();
  other.launches.push_back(other.launches.back());
  EXPECT_EQ(message_of(csv_of({other})),
            "panel.csv: line 5: '2' is one launch too many: a call of sm80 makes 2 (num_splits = 4)");
  other.kernel = "./mine.so";  // whose launches nobody knows
  EXPECT_EQ(message_of(csv_of({other})), "");
  MeasuredCall alone = two_launches();
  alone.launches.pop_back();
  EXPECT_EQ(message_of(csv_of({alone, two_launches()})), missing);
  alone.c.num_splits = 1;
  EXPECT_EQ(message_of(csv_of({alone, two_launches()})), "");
  MeasuredCall unfused = alone;
  unfused.kernel = "unfused";
  unfused.launches = {3, unfused.launches[0]};
  EXPECT_EQ(message_of(csv_lines({unfused}, 5)), "");
  for (const std::size_t kept : {1, 2})
    EXPECT_EQ(message_of(csv_lines({unfused}, 2 + kept)),
              fmt::format("panel.csv: line {}: launch '{}' ends a call of unfused that makes 3 launches (num_splits = "
                          "1); launch {} is missing",
                          2 + kept, kept - 1, kept));
  EXPECT_THAT(message_of(whole.substr(0, whole.size() - 2)), testing::StartsWith("panel.csv: line 4: '"));
}

TEST(MeasuredCall, LinesMayEndAsOnWindows) {
  const std::string text = csv_of({two_launches()});
  std::string lines;
  for (const char c : text) lines += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const MeasuredFile read = measured_from_csv(lines, "panel.csv");
  EXPECT_THAT(read.comments, ElementsAre("of a test"));
  EXPECT_EQ(to_csv(read), text);
}

TEST(MeasuredCall, ReadsWhatNcuLeaves) {
  const std::string log =
      "==PROF== Connected to process 5\n"
      "\"ID\",\"Kernel Name\",\"Block "
      "Size\",\"dram__bytes_read.sum\",\"memory_l1_wavefronts_shared\",\"launch__waves\"\n"
      "\"\",\"\",\"\",\"byte\",\"\",\"\"\n"
      "\"0\",\"void forward<(int)3, 5>(Params)\",\"(128, 1, 1)\",\"1,234,567\",\"8.5\",\"3\"\n"
      "\"1\",\"mark\",\"(1, 1, 1)\",\"n/a\",\"0\",\"3\"\n";
  const auto launches = launches_from_ncu(log);
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].function, "void forward<(int)3, 5>(Params)");
  EXPECT_THAT(launches[0].counters,
              ElementsAre(Pair("dram__bytes_read.sum", 1234567), Pair("memory_l1_wavefronts_shared", 8.5)));
  EXPECT_THAT(launches[1].counters, ElementsAre(Pair("memory_l1_wavefronts_shared", 0)));
  EXPECT_THROW(launches_from_ncu("==ERROR== nothing\n"), InvalidInput);
}

TEST(MeasuredCall, CellsHoldCommasAndQuotes) {
  EXPECT_THAT(csv_cells("a,\"b,\"\"c\"\"\",,d"), ElementsAre("a", "b,\"c\"", "", "d"));
  EXPECT_EQ(csv_cell("plain"), "plain");
  for (const char* text : {"", "a,b", "\"", "a\"b\"", ",,"}) EXPECT_THAT(csv_cells(csv_cell(text)), ElementsAre(text));
}

TEST(MeasuredCall, ThePanelHasEachCallOnceAndAllAreValid) {
  std::set<std::string> seen;
  for (const MeasuredCall& call : measurement_panel()) {
    EXPECT_NO_THROW(validate(call.c)) << command_line(call.c);
    EXPECT_TRUE(seen.insert(call.kernel + command_line(call.c)).second) << command_line(call.c);
    EXPECT_TRUE(call.launches.empty());
  }
  EXPECT_GE(seen.size(), 60u);
}

}  // namespace
}  // namespace attest
