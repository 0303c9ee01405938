// Files whose names or contents are at fault, which no row of bad_input_test.cpp can hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "run_attest.h"

namespace attest::tools {
namespace {

// By whoever says it: what dlopen() and Python quote of a file's name, as a flag's own value.
TEST(BadInput, ControlCharactersOfAFilesNameAreEscaped) {
  const Folder folder;
  const std::string name = "./two\nlines\x7f\xc2\x9b\x9b.so", shown = "./two\\x0alines\\x7f\\xc2\\x9b\\x9b.so";
  folder.write(name, "no library");
  const Ran check = run_attest({"check", "--kernel", name}, folder),
            doctor = run_attest({"doctor", "--kernel", name}, folder);
  EXPECT_EQ(check.err.find("attest: kernel '" + shown + "' cannot be loaded: "), 0u) << check.err;
  EXPECT_EQ(std::count(check.err.begin(), check.err.end(), '\n'), 1) << check.err;
  EXPECT_EQ(doctor.out.find("kernel " + shown + "\n"), 0u) << doctor.out;
  EXPECT_EQ(std::count(doctor.out.begin(), doctor.out.end(), '\n'), 2) << doctor.out;
}

// Another call, another counter, and a call of two launches.
TEST(BadInput, APanelAgainstOneWithNothingInCommon) {
  const Folder folder;
  const std::string head = "mechanism,kernel,case,launch,function,", row = "m,sm80,{},0,f,1\n",
                    split = ",\"{\"\"num_splits\"\":2}\",", bytes = "dram__bytes_read.sum\n";
  const std::string two = "m,sm80" + split + "0,f,1\nm,sm80" + split + "1,f,1\n";
  const auto against = [&](const std::string& panel, const std::string& other) {
    folder.write("panel.csv", "# gpu: NVIDIA H200\n" + head + panel);
    folder.write("other.csv", head + other);
    return run_attest({"measure", "--panel", "--from", "panel.csv", "--against", "other.csv"}, folder);
  };
  for (const auto& [panel, other] :
       {std::pair{bytes + row, bytes + "m,./mine.so,{},0,f,1\n"},
        std::pair{bytes + row, "dram__bytes_write.sum\n" + row}, std::pair{bytes + two, bytes + two}}) {
    const Ran ran = against(panel, other);
    EXPECT_EQ(ran.exit_code, 2) << other;
    EXPECT_EQ(ran.err, "attest: against: 'other.csv' has no counter of these calls that make one launch\n");
  }
  EXPECT_EQ(against(bytes + row, bytes + row).exit_code, 0);
}

// Of a file whose caches were warm all is predicted so, with --warm or without it.
TEST(BadInput, APanelThatIsWarmOrCold) {
  const Folder folder;
  const std::string rows =
      "mechanism,kernel,case,launch,function,dram__bytes_read.sum\n"
      "m,sm80,\"{\"\"nheads\"\":8,\"\"seqlen_q\"\":1024,\"\"seqlen_k\"\":1024}\",0,f,1\n";
  folder.write("cold.csv", "# gpu: NVIDIA H200\n# caches: cold\n" + rows);
  folder.write("warm.csv", "# gpu: NVIDIA H200\n# caches: warm\n" + rows);
  folder.write("silent.csv", "# gpu: NVIDIA H200\n" + rows);
  const auto measure = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"measure", "--panel", "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    return run_attest(words, folder);
  };
  const Ran refused = measure({"--from", "cold.csv", "--warm"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err, "attest: warm: --warm goes without 'cold.csv', whose caches were cold\n");
  const Ran warm = measure({"--from", "warm.csv"}), said = measure({"--from", "warm.csv", "--warm"}),
            cold = measure({"--from", "cold.csv"});
  EXPECT_EQ(warm.exit_code, 0) << warm.err;
  EXPECT_EQ(warm.out, said.out);
  EXPECT_NE(warm.out, cold.out);
  EXPECT_EQ(measure({"--from", "silent.csv", "--warm"}).out, warm.out);
}

// The name may be all that a GPU has in common with the one of a device file.
TEST(BadInput, APanelOfAGpuThatNoDeviceDescribes) {
  const Folder folder;
  const auto measure = [&](const std::string& comments, const std::vector<std::string>& more = {}) {
    folder.write("panel.csv", comments +
                                  "mechanism,kernel,case,launch,function,dram__bytes_read.sum\n"
                                  "m,sm80,\"{\"\"nheads\"\":8,\"\"seqlen_q\"\":1024,\"\"seqlen_k\"\":1024}\",0,f,1\n");
    std::vector<std::string> words = {"measure", "--panel", "--from", "panel.csv"};
    words.insert(words.end(), more.begin(), more.end());
    return run_attest(words, folder);
  };
  const std::string instead = "; give one with --device, or what `attest calibrate` writes\n";
  const std::string pcie = "# gpu: NVIDIA H100 PCIe\n# num_sms: 114\n# compute_capability: 90\n";
  EXPECT_EQ(measure(pcie).exit_code, 2);
  EXPECT_EQ(measure(pcie).err, "attest: device: 'NVIDIA H100 PCIe' has num_sms 114, h100 has 132" + instead);
  EXPECT_EQ(measure(pcie, {"--device", "h100"}).exit_code, 0);
  EXPECT_EQ(measure("# gpu: NVIDIA H100\n# num_sms: 132\n# compute_capability: 100\n").err,
            "attest: device: 'NVIDIA H100' has compute_capability 100, h100 has 90" + instead);
  EXPECT_EQ(measure("# gpu: NVIDIA GH200 480GB\n").err,
            "attest: device: 'NVIDIA GH200 480GB' is described by no device of `attest devices`" + instead);
  EXPECT_EQ(measure("").exit_code, 2);
  EXPECT_EQ(measure("").err, "attest: device: the GPU is not named by the file" + instead);
  EXPECT_EQ(measure("", {"--device", "h100"}).out.find("predicted for h100\n"), 0u);
  const Ran known = measure("# gpu: NVIDIA H100/80GB\n# num_sms: 132\n# compute_capability: 90\n# via: cupti\n");
  EXPECT_EQ(known.exit_code, 0) << known.err;
  EXPECT_EQ(known.out.find("NVIDIA H100/80GB, 132 SMs of compute capability 9.0; through cupti; predicted for h100\n"),
            0u)
      << known.out;
}

TEST(BadInput, APanelWithACallThatItsKernelDoesNotTake) {
  const Folder folder;
  folder.write("panel.csv",
               "# gpu: NVIDIA H200\nmechanism,kernel,case,launch,function,dram__bytes_read.sum\nm,sm80,{},0,f,1\n"
               "m,sm80-spill,\"{\"\"dtype\"\":\"\"fp32\"\"}\",0,f,1\n");
  const Ran ran = run_attest({"measure", "--panel", "--from", "panel.csv"}, folder);
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_EQ(ran.err.find("attest: panel.csv: line 4: dtype: 'fp32' is "), 0u) << ran.err;
}

}  // namespace
}  // namespace attest::tools
