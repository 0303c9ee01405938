#include "page_view.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace attest::tools {

using nlohmann::json;
using testing::IsEmpty;

namespace {

struct Shell {
  int status;
  std::string out;
};
Shell shell(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string out;
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

}  // namespace

std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    const Shell found = shell(fmt::format("command -v {}", name));
    if (found.status == 0) return found.out.substr(0, found.out.find('\n'));
  }
  return "";
}

std::string file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<json> seen(const Folder& folder, const std::vector<std::string>& pages, const std::vector<int>& widths) {
  std::string frames;
  for (const std::string& page : pages) {
    std::string text = folder.read(page);
    const std::string head = "<head>";
    text.insert(text.find(head) + head.size(), "<script>" + file(ATTEST_PAGE_CHECK) + "</script>");
    folder.write("checked_" + page, text);
    for (const int width : widths)
      frames +=
          fmt::format("<iframe src='checked_{}' style='width:{}px;height:900px;border:0'></iframe>\n", page, width);
  }
  // messages name their frame by its place among all
  folder.write("frames.html",
               "<body><pre id=seen></pre><script>const all = [];addEventListener('message', (e) => {"
               "const i = [...document.querySelectorAll('iframe')].findIndex((f) => f.contentWindow === e.source);"
               "all[i] = e.data; document.getElementById('seen').textContent = 'SEEN[' + all.join(',') + ']SEEN';});"
               "</script>" +
                   frames);
  const Shell dump = shell(
      fmt::format("timeout 100 '{}' --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir='{}' "
                  "--virtual-time-budget=20000 --dump-dom 'file://{}' 2>/dev/null",
                  browser(), (folder.path() / "profile").string(), (folder.path() / "frames.html").string()));
  const std::size_t begin = dump.out.find("SEEN["), end = dump.out.find("]SEEN");
  if (end == std::string::npos) throw std::runtime_error("the browser saw nothing: " + dump.out.substr(0, 500));
  return json::parse(dump.out.substr(begin + 4, end - begin - 3)).get<std::vector<json>>();
}

void expect_legible(const json& page) {
  for (const auto& [id, section] : page["sections"].items())
    EXPECT_THAT(section["untold"], IsEmpty()) << id << ": " << section["untold"];
  EXPECT_THAT(page["parted"], IsEmpty()) << page["parted"];
}

void expect_whole(const json& page) {
  EXPECT_THAT(page["errors"], IsEmpty()) << page["errors"];
  EXPECT_LE(page["overflow"], 0) << "wider than its window";
  EXPECT_THAT(page["clipped"], IsEmpty()) << page["clipped"];
  EXPECT_EQ(page["foreign"], 0) << "something that is loaded, or markup that came in through a name";
  for (const auto& [id, section] : page["sections"].items()) {
    SCOPED_TRACE(id);
    EXPECT_THAT(section["misplaced"], IsEmpty()) << section["misplaced"];
    EXPECT_FALSE(section["unreadable"]);
    EXPECT_GT(section["words"], 20);
  }
}

}  // namespace attest::tools
