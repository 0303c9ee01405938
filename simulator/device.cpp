#include "attest/simulator/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <variant>

#include "attest/problem/error.h"
#include "attest/problem/file.h"
#include "embedded.h"
#include "json_reader.h"

namespace attest {
namespace {

struct Field {
  std::string_view name;
  std::variant<std::int64_t DeviceSpec::*, double DeviceSpec::*> member;
  double low, high;  // inclusive
};

// Limits are what the models can take, not what is plausible: zero bandwidth divides, 33 ways do not fit a set.
constexpr Field fields[] = {
    {"num_sms", &DeviceSpec::num_sms, 1, 4096},
    {"sms_per_coalescer", &DeviceSpec::sms_per_coalescer, 1, 16},
    {"sm_clock_hz", &DeviceSpec::sm_clock_hz, 1e6, 1e11},
    {"warp_schedulers_per_sm", &DeviceSpec::warp_schedulers_per_sm, 1, 16},
    {"registers_per_sm", &DeviceSpec::registers_per_sm, 1024, 1 << 24},
    {"registers_per_thread_max", &DeviceSpec::registers_per_thread_max, 16, 4096},
    {"register_allocation_unit", &DeviceSpec::register_allocation_unit, 1, 65536},
    {"max_warps_per_sm", &DeviceSpec::max_warps_per_sm, 1, 1024},
    {"max_ctas_per_sm", &DeviceSpec::max_ctas_per_sm, 1, 1024},
    {"smem_bytes_per_sm", &DeviceSpec::smem_bytes_per_sm, 1024, 1 << 30},
    {"smem_bytes_per_cta_max", &DeviceSpec::smem_bytes_per_cta_max, 1024, 1 << 30},
    {"smem_reserved_bytes_per_cta", &DeviceSpec::smem_reserved_bytes_per_cta, 0, 65536},
    {"smem_bytes_per_clock", &DeviceSpec::smem_bytes_per_clock, 1, 65536},
    {"smem_latency_cycles", &DeviceSpec::smem_latency_cycles, 0, 1e6},
    {"mma_sync_fma_per_clock_16bit", &DeviceSpec::mma_sync_fma_per_clock_16bit, 1, 1e7},
    {"wgmma_fma_per_clock_16bit", &DeviceSpec::wgmma_fma_per_clock_16bit, 0, 1e7},
    {"wgmma_fma_per_clock_8bit", &DeviceSpec::wgmma_fma_per_clock_8bit, 0, 1e7},
    {"fp32_fma_per_clock", &DeviceSpec::fp32_fma_per_clock, 1, 1e7},
    {"exp_per_clock", &DeviceSpec::exp_per_clock, 0.125, 1e6},
    {"l2_bytes", &DeviceSpec::l2_bytes, 65536, 1LL << 40},
    {"l2_partitions", &DeviceSpec::l2_partitions, 1, 2},
    {"l2_ways", &DeviceSpec::l2_ways, 1, 32},
    {"l2_dirty_ways", &DeviceSpec::l2_dirty_ways, 1, 32},
    {"l2_bytes_per_second", &DeviceSpec::l2_bytes_per_second, 1e6, 1e18},
    {"l2_latency_cycles", &DeviceSpec::l2_latency_cycles, 0, 1e6},
    {"dram_bytes", &DeviceSpec::dram_bytes, 1 << 20, 1LL << 50},
    {"dram_bytes_per_second", &DeviceSpec::dram_bytes_per_second, 1e6, 1e18},
    {"dram_latency_cycles", &DeviceSpec::dram_latency_cycles, 0, 1e6},
    {"launch_overhead_seconds", &DeviceSpec::launch_overhead_seconds, 0, 1},
};

void read_field(const JsonReader& reader, const JsonReader::Json& json, const Field& field, DeviceSpec& device) {
  const JsonReader::Json& entry = reader.member(json, field.name, field.name);
  reader.only(entry, field.name, {"value", "source", "estimated"});
  const std::string value_path = fmt::format("{}.value", field.name);
  if (const auto* whole = std::get_if<std::int64_t DeviceSpec::*>(&field.member)) {
    device.*(*whole) = reader.integer(entry, "value", value_path, field.low, field.high);
  } else {
    device.*std::get<double DeviceSpec::*>(field.member) =
        reader.number(entry, "value", value_path, field.low, field.high);
  }
  if (entry.contains("source") == entry.contains("estimated"))
    reader.refuse(field.name, entry.contains("source") ? "both source and estimated;" : "neither source nor estimated;",
                  "exactly one must say where the value comes from");
  const bool estimated = entry.contains("estimated");
  const std::string_view key = estimated ? "estimated" : "source";
  device.origins.push_back(
      {std::string(field.name), reader.text(entry, key, fmt::format("{}.{}", field.name, key)), estimated});
}

void check_whole(const JsonReader& reader, const DeviceSpec& d) {
  if (d.smem_bytes_per_cta_max > d.smem_bytes_per_sm)
    reader.refuse("smem_bytes_per_cta_max", std::to_string(d.smem_bytes_per_cta_max),
                  fmt::format("must not exceed smem_bytes_per_sm = {}", d.smem_bytes_per_sm));
  if (d.l2_dirty_ways > d.l2_ways)
    reader.refuse("l2_dirty_ways", std::to_string(d.l2_dirty_ways),
                  fmt::format("must not exceed l2_ways = {}", d.l2_ways));
}

}  // namespace

const FieldOrigin& DeviceSpec::origin(std::string_view field) const {
  const auto at = std::find_if(origins.begin(), origins.end(), [&](const FieldOrigin& o) { return o.field == field; });
  if (at == origins.end()) throw std::logic_error(fmt::format("a device has no field {}", field));
  return *at;
}

DeviceSpec device_from_json_text(std::string_view text, std::string_view file) {
  const JsonReader reader(file);
  const JsonReader::Json json = reader.parse("device", text);
  reader.only(json, "", {"schema", "name", "description", "fields"});
  if (const std::string schema = reader.text(json, "schema", "schema"); schema != "attest/device/1")
    reader.refuse("schema", fmt::format("'{}'", schema), "is not attest/device/1");
  DeviceSpec device;
  device.name = reader.text(json, "name", "name");
  device.description = reader.text(json, "description", "description");
  const JsonReader::Json& entries = reader.member(json, "fields", "fields");
  if (!entries.is_object()) reader.refuse("fields", entries.dump(), "must be an object");
  for (const auto& item : entries.items()) {
    const std::string& key = item.key();
    if (std::none_of(std::begin(fields), std::end(fields), [&](const Field& f) { return f.name == key; }))
      reader.refuse(key, "unknown field;", "remove it or correct its name");
  }
  for (const Field& field : fields) read_field(reader, entries, field, device);
  check_whole(reader, device);
  return device;
}

DeviceSpec load_device(const std::string& name_or_path) {
  if (is_path(name_or_path))
    return device_from_json_text(read_file("device", name_or_path, largest_description_bytes), name_or_path);
  for (const EmbeddedFile& file : embedded_devices())
    if (file.name == name_or_path) return device_from_json_text(file.text, fmt::format("{}.json", file.name));
  throw InvalidInput("device", fmt::format("'{}'", name_or_path),
                     fmt::format("is none of {}, nor a .json file", fmt::join(device_names(), ", ")));
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_devices()) names.emplace_back(file.name);
  return names;
}

}  // namespace attest
