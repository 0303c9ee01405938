#include "attest/simulator/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <variant>

#include "attest/problem/error.h"
#include "attest/problem/file.h"
#include "attest/problem/json_reader.h"
#include "attest/simulator/calibration.h"
#include "embedded.h"

namespace attest {
namespace {

struct Field {
  std::string_view name;
  DeviceMember member;
  double low, high;  // inclusive
  enum Of { gpu, cube_vector, both } of = gpu;
};

constexpr std::int64_t most_sets = 1 << 20;  // each is kept track of: 68 times an H200's

// Limits are what the models can take, not what is plausible: zero bandwidth divides, 33 ways do not fit a set,
// an L1 of 1 GiB is followed line by line for minutes, and of more than 64 warps an SM, each a CTA at least, the
// network that they wait in (queueing_network.h) has too many states.
constexpr Field fields[] = {
    {"compute_capability", &DeviceSpec::compute_capability, 0, 999},
    {"num_sms", &DeviceSpec::num_sms, 1, 4096},
    {"gpc_sides", &DeviceSpec::gpc_sides, 0, 1},
    {"gpc_clocks", &DeviceSpec::gpc_clocks, 0.5, 2},
    {"gpc_clock_spread_mma_sync_over_wgmma", &DeviceSpec::gpc_clock_spread_mma_sync_over_wgmma, 0, 1.5},
    {"sm_clock_hz", &DeviceSpec::sm_clock_hz, 1e6, 1e11},
    {"warp_schedulers_per_sm", &DeviceSpec::warp_schedulers_per_sm, 1, 16},
    {"registers_per_sm", &DeviceSpec::registers_per_sm, 1024, 1 << 24},
    {"registers_per_thread_max", &DeviceSpec::registers_per_thread_max, 16, 4096},
    {"register_allocation_unit", &DeviceSpec::register_allocation_unit, 1, 65536},
    {"max_warps_per_sm", &DeviceSpec::max_warps_per_sm, 1, 64},
    {"max_ctas_per_sm", &DeviceSpec::max_ctas_per_sm, 1, 64},
    {"smem_bytes_per_sm", &DeviceSpec::smem_bytes_per_sm, 1024, 1 << 26},
    {"smem_bytes_per_cta_max", &DeviceSpec::smem_bytes_per_cta_max, 1024, 1 << 26},
    {"smem_reserved_bytes_per_cta", &DeviceSpec::smem_reserved_bytes_per_cta, 0, 65536},
    {"l1_and_smem_bytes_per_sm", &DeviceSpec::l1_and_smem_bytes_per_sm, 1024, 1 << 26},
    {"smem_bytes_per_clock", &DeviceSpec::smem_bytes_per_clock, 1, 65536},
    {"smem_latency_cycles", &DeviceSpec::smem_latency_cycles, 0, 1e6},
    {"mma_sync_fma_per_clock_16bit", &DeviceSpec::mma_sync_fma_per_clock_16bit, 1, 1e7},
    {"wgmma_fma_per_clock_16bit", &DeviceSpec::wgmma_fma_per_clock_16bit, 0, 1e7},
    {"wgmma_fma_per_clock_8bit", &DeviceSpec::wgmma_fma_per_clock_8bit, 0, 1e7},
    {"fp32_fma_per_clock", &DeviceSpec::fp32_fma_per_clock, 1, 1e7},
    {"exp_per_clock", &DeviceSpec::exp_per_clock, 0.125, 1e6},
    {"alu_instruction_cycles", &DeviceSpec::alu_instruction_cycles, 0.125, 1e4},
    {"fma_instruction_cycles", &DeviceSpec::fma_instruction_cycles, 0.125, 1e4},
    {"wgmma_latency_cycles", &DeviceSpec::wgmma_latency_cycles, 0, 1e6},
    {"alu_beside_wgmma", &DeviceSpec::alu_beside_wgmma, 1, 100},
    {"fma_beside_wgmma", &DeviceSpec::fma_beside_wgmma, 1, 100},
    {"scaled_exp_beside_wgmma", &DeviceSpec::scaled_exp_beside_wgmma, 1, 100},
    {"step_deviation_mma_sync", &DeviceSpec::step_deviation_mma_sync, 0, 0.5},
    {"step_deviation_mma_sync_alone", &DeviceSpec::step_deviation_mma_sync_alone, 0, 0.5},
    {"step_deviation_wgmma", &DeviceSpec::step_deviation_wgmma, 0, 0.5},
    {"step_deviation_wgmma_3", &DeviceSpec::step_deviation_wgmma_3, 0, 0.5},
    {"l2_bytes", &DeviceSpec::l2_bytes, 65536, 1LL << 40, Field::both},
    {"l2_partitions", &DeviceSpec::l2_partitions, 1, 2},
    {"l2_slices_per_partition", &DeviceSpec::l2_slices_per_partition, 1, 64},
    {"l2_ways", &DeviceSpec::l2_ways, 1, 32},
    {"l2_dirty_ways", &DeviceSpec::l2_dirty_ways, 1, 32},
    {"l2_bytes_per_second", &DeviceSpec::l2_bytes_per_second, 1e6, 1e18, Field::both},
    {"l2_write_bytes_per_second", &DeviceSpec::l2_write_bytes_per_second, 1e6, 1e18},
    {"l2_shares", &DeviceSpec::l2_shares, 0.1, 10},
    {"l2_latency_cycles", &DeviceSpec::l2_latency_cycles, 0, 1e6},
    {"l2_latency_tail_cycles", &DeviceSpec::l2_latency_tail_cycles, 0, 1e6},
    {"dram_bytes", &DeviceSpec::dram_bytes, 1 << 20, 1LL << 50, Field::both},
    {"dram_bytes_per_second", &DeviceSpec::dram_bytes_per_second, 1e6, 1e18, Field::both},
    {"dram_efficiency", &DeviceSpec::dram_efficiency, 0.01, 1},
    {"dram_read_efficiency", &DeviceSpec::dram_read_efficiency, 0.01, 1},
    {"dram_latency_cycles", &DeviceSpec::dram_latency_cycles, 0, 1e6},
    {"dram_latency_tail_cycles", &DeviceSpec::dram_latency_tail_cycles, 0, 1e6},
    {"launch_crossing_bytes", &DeviceSpec::launch_crossing_bytes, 0, 1e12},
    {"kernel_launch_cycles", &DeviceSpec::kernel_launch_cycles, 0, 1e9},
    {"cta_launch_cycles", &DeviceSpec::cta_launch_cycles, 0, 1e9},
    {"cta_start_cycles", &DeviceSpec::cta_start_cycles, 0, 1e6},
    {"argument_line_cycles", &DeviceSpec::argument_line_cycles, 0, 1e6},
    {"bulk_prologue_cycles", &DeviceSpec::bulk_prologue_cycles, 0, 1e9},
    {"code_cache_bytes", &DeviceSpec::code_cache_bytes, 1024, 1 << 30},
    {"code_bytes_per_clock", &DeviceSpec::code_bytes_per_clock, 0.01, 1e6},
    {"copy_time_scale", &DeviceSpec::copy_time_scale, 0.01, 100},
    {"kernel_code_scale", &DeviceSpec::kernel_code_scale, 0.01, 100},
    {"num_cube_cores", &DeviceSpec::num_cube_cores, 1, 4096, Field::cube_vector},
    {"num_vector_cores", &DeviceSpec::num_vector_cores, 1, 4096, Field::cube_vector},
    {"core_clock_hz", &DeviceSpec::core_clock_hz, 1e6, 1e11, Field::cube_vector},
    {"cube_fma_per_clock_16bit", &DeviceSpec::cube_fma_per_clock_16bit, 1, 1e7, Field::cube_vector},
    {"vector_fp32_per_clock", &DeviceSpec::vector_fp32_per_clock, 1, 1e7, Field::cube_vector},
    {"vector_exp_per_clock", &DeviceSpec::vector_exp_per_clock, 0.125, 1e6, Field::cube_vector},
    {"unified_buffer_bytes", &DeviceSpec::unified_buffer_bytes, 1024, 1 << 30, Field::cube_vector},
    {"l1_bytes", &DeviceSpec::l1_bytes, 1024, 1 << 30, Field::cube_vector},
    {"l0a_bytes", &DeviceSpec::l0a_bytes, 1024, 1 << 30, Field::cube_vector},
    {"l0b_bytes", &DeviceSpec::l0b_bytes, 1024, 1 << 30, Field::cube_vector},
    {"l0c_bytes", &DeviceSpec::l0c_bytes, 1024, 1 << 30, Field::cube_vector},
    {"scores_through_global_memory", &DeviceSpec::scores_through_global_memory, 0, 1, Field::cube_vector},
    {"launch_overhead_seconds", &DeviceSpec::launch_overhead_seconds, 0, 1, Field::both},
};

const Field& field_of(DeviceMember member) {
  const auto* const at =
      std::find_if(std::begin(fields), std::end(fields), [&](const Field& f) { return f.member == member; });
  if (at == std::end(fields)) throw std::logic_error("a member of a device that no file has");
  return *at;
}

bool has(DeviceKind kind, const Field& f) {
  return f.of == Field::both || (f.of == Field::gpu) == (kind == DeviceKind::gpu);
}

void read_field(const JsonReader& reader, const JsonReader::Json& json, const Field& field, DeviceSpec& device) {
  const JsonReader::Json& entry = reader.member(json, field.name, field.name);
  reader.only(entry, field.name, {"value", "source", "estimated"});
  const std::string value_path = fmt::format("{}.value", field.name);
  if (const auto* whole = std::get_if<std::int64_t DeviceSpec::*>(&field.member)) {
    device.*(*whole) = reader.integer(entry, "value", value_path, field.low, field.high);
  } else if (const auto* list = std::get_if<std::vector<double> DeviceSpec::*>(&field.member)) {
    device.*(*list) = reader.numbers(entry, "value", value_path, field.low, field.high);
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

double mean_of(const std::vector<double>& list) {
  return std::accumulate(list.begin(), list.end(), 0.0) / static_cast<double>(list.size());
}

void check_gpu(const JsonReader& reader, const DeviceSpec& d) {
  if (d.smem_bytes_per_cta_max > d.smem_bytes_per_sm)
    reader.refuse("smem_bytes_per_cta_max", std::to_string(d.smem_bytes_per_cta_max),
                  fmt::format("must not exceed smem_bytes_per_sm = {}", d.smem_bytes_per_sm));
  if (d.l1_and_smem_bytes_per_sm < d.smem_bytes_per_sm)
    reader.refuse("l1_and_smem_bytes_per_sm", std::to_string(d.l1_and_smem_bytes_per_sm),
                  fmt::format("must not be below smem_bytes_per_sm = {}", d.smem_bytes_per_sm));
  if (d.l2_dirty_ways > d.l2_ways)
    reader.refuse("l2_dirty_ways", std::to_string(d.l2_dirty_ways),
                  fmt::format("must not exceed l2_ways = {}", d.l2_ways));
  if (d.l2_bytes > d.dram_bytes)
    reader.refuse("l2_bytes", std::to_string(d.l2_bytes), fmt::format("must not exceed dram_bytes = {}", d.dram_bytes));
  const std::int64_t set_bytes = d.l2_partitions * d.l2_ways * 128, sets = d.l2_bytes / set_bytes;
  if (d.l2_bytes % set_bytes != 0)
    reader.refuse("l2_bytes", std::to_string(d.l2_bytes),
                  fmt::format("must be a multiple of {}, a set of l2_ways = {} in each of l2_partitions = {}",
                              set_bytes, d.l2_ways, d.l2_partitions));
  if (sets > most_sets)
    reader.refuse(
        "l2_bytes", std::to_string(d.l2_bytes),
        fmt::format("makes {} sets a partition of l2_ways = {}, must not exceed {}", sets, d.l2_ways, most_sets));
  if (sets % d.l2_slices_per_partition != 0)
    reader.refuse("l2_slices_per_partition", std::to_string(d.l2_slices_per_partition),
                  fmt::format("must divide the {} sets of a partition, by l2_bytes = {} and l2_ways = {}", sets,
                              d.l2_bytes, d.l2_ways));
  if (d.gpcs() > d.num_sms)
    reader.refuse("gpc_sides", fmt::format("{} GPCs", d.gpcs()),
                  fmt::format("must not exceed num_sms = {}", d.num_sms));
  if (d.gpc_clocks.size() != d.gpc_sides.size())
    reader.refuse("gpc_clocks", fmt::format("{} GPCs", d.gpc_clocks.size()),
                  fmt::format("must be as many as gpc_sides, {}", d.gpcs()));
  constexpr double of_four_digits = 1e-4;
  if (const double mean = mean_of(d.gpc_clocks); std::abs(mean - 1) > of_four_digits)
    reader.refuse("gpc_clocks", fmt::format("an average of {:.6g}", mean),
                  fmt::format("must be 1, within {}", of_four_digits));
  for (const double side : d.gpc_sides) {
    if (side >= static_cast<double>(d.l2_partitions))
      reader.refuse("gpc_sides", fmt::format("{}", side),
                    fmt::format("must be below l2_partitions = {}", d.l2_partitions));
    if (side != std::floor(side)) reader.refuse("gpc_sides", fmt::format("{}", side), "must be whole numbers");
  }
  if (d.l2_latency_cycles < d.smem_latency_cycles)
    reader.refuse("l2_latency_cycles", fmt::format("{}", d.l2_latency_cycles),
                  fmt::format("must not be below smem_latency_cycles = {}", d.smem_latency_cycles));
  if (d.dram_latency_cycles < d.l2_latency_cycles)
    reader.refuse("dram_latency_cycles", fmt::format("{}", d.dram_latency_cycles),
                  fmt::format("must not be below l2_latency_cycles = {}, which is a part of it", d.l2_latency_cycles));
  const std::int64_t warp = d.registers_per_sm / d.warp_schedulers_per_sm;
  if (d.register_allocation_unit > warp)
    reader.refuse("register_allocation_unit", std::to_string(d.register_allocation_unit),
                  fmt::format("must not exceed the {} registers of a scheduler", warp));
}

void check_cube_vector(const JsonReader& reader, DeviceSpec& d) {
  if (d.num_vector_cores % d.num_cube_cores != 0)
    reader.refuse("num_vector_cores", std::to_string(d.num_vector_cores),
                  fmt::format("must be a multiple of num_cube_cores = {}", d.num_cube_cores));
  if (d.l2_bytes > d.dram_bytes)
    reader.refuse("l2_bytes", std::to_string(d.l2_bytes), fmt::format("must not exceed dram_bytes = {}", d.dram_bytes));
  const auto beside = static_cast<double>(d.num_vector_cores) / static_cast<double>(d.num_cube_cores);
  d.num_sms = d.num_cube_cores;
  d.sm_clock_hz = d.core_clock_hz;
  d.smem_bytes_per_cta_max = d.unified_buffer_bytes;
  d.mma_sync_fma_per_clock_16bit = d.cube_fma_per_clock_16bit;
  d.fp32_fma_per_clock = beside * d.vector_fp32_per_clock;
  d.exp_per_clock = beside * d.vector_exp_per_clock;
  d.l2_partitions = 1;
}

DeviceKind read_kind(const JsonReader& reader, const JsonReader::Json& json) {
  if (!json.contains("kind")) return DeviceKind::gpu;
  const std::string kind = reader.text(json, "kind", "kind");
  if (kind == "gpu") return DeviceKind::gpu;
  if (kind != "cube_vector") reader.refuse("kind", fmt::format("'{}'", kind), "is none of gpu, cube_vector");
  return DeviceKind::cube_vector;
}

}  // namespace

const FieldOrigin& DeviceSpec::origin(std::string_view field) const {
  const auto at = std::find_if(origins.begin(), origins.end(), [&](const FieldOrigin& o) { return o.field == field; });
  if (at == origins.end()) throw std::logic_error(fmt::format("a device has no field {}", field));
  return *at;
}

std::size_t DeviceSpec::num_estimates() const {
  return static_cast<std::size_t>(
      std::count_if(origins.begin(), origins.end(), [](const FieldOrigin& o) { return o.estimated; }));
}

std::string_view device_field_name(DeviceMember member) { return field_of(member).name; }

FieldRange device_field_range(DeviceMember member) { return {field_of(member).low, field_of(member).high}; }

void copy_device_field(std::string_view field, const DeviceSpec& from, DeviceSpec& to) {
  for (const Field& f : fields)
    if (f.name == field) std::visit([&](auto member) { to.*member = from.*member; }, f.member);
}

DeviceSpec device_from_json_text(std::string_view text, std::string_view file) {
  const JsonReader reader(file);
  const JsonReader::Json json = reader.parse("device", text);
  reader.only(json, "", {"schema", "name", "description", "kind", "fields"});
  if (const std::string schema = reader.text(json, "schema", "schema"); schema != "attest/device/1")
    reader.refuse("schema", fmt::format("'{}'", schema), "is not attest/device/1");
  DeviceSpec device;
  device.name = reader.text(json, "name", "name");
  device.description = reader.text(json, "description", "description");
  device.kind = read_kind(reader, json);
  const JsonReader::Json& entries = reader.member(json, "fields", "fields");
  if (!entries.is_object()) reader.refuse("fields", shown_value(entries), "must be an object");
  for (const auto& item : entries.items()) {
    const std::string& key = item.key();
    const auto* known =
        std::find_if(std::begin(fields), std::end(fields), [&](const Field& f) { return f.name == key; });
    if (known == std::end(fields)) reader.refuse(shown_name(key), "unknown field;", "remove it or correct its name");
    if (!has(device.kind, *known))
      reader.refuse(key, known->of == Field::gpu ? "a field of kind gpu;" : "a field of kind cube_vector;",
                    "this device is of the other kind");
  }
  for (const Field& field : fields)
    if (has(device.kind, field)) read_field(reader, entries, field, device);
  if (device.kind == DeviceKind::gpu)
    check_gpu(reader, device);
  else
    check_cube_vector(reader, device);
  return device;
}

nlohmann::ordered_json to_json(const DeviceSpec& device) {
  nlohmann::ordered_json json = {
      {"schema", "attest/device/1"}, {"name", device.name}, {"description", device.description}};
  if (device.kind == DeviceKind::cube_vector) json["kind"] = "cube_vector";
  for (const Field& field : fields) {
    if (!has(device.kind, field)) continue;
    const FieldOrigin& origin = device.origin(field.name);
    nlohmann::ordered_json& entry = json["fields"][std::string(field.name)];
    std::visit([&](auto member) { entry["value"] = device.*member; }, field.member);
    entry[origin.estimated ? "estimated" : "source"] = origin.text;
  }
  return json;
}

std::vector<std::string_view> device_field_names() {
  std::vector<std::string_view> names;
  for (const Field& field : fields) names.push_back(field.name);
  return names;
}

DeviceSpec device_with(const DeviceSpec& device, std::string_view field, const nlohmann::ordered_json& value,
                       std::string_view whence) {
  nlohmann::ordered_json json = to_json(device);
  json["fields"][std::string(field)] = {{"value", value}, {"source", whence}};
  return device_from_json_text(json.dump(), whence);
}

std::optional<DeviceSpec> device_scaled(const DeviceSpec& device, std::string_view field, double factor) {
  const auto* const f = std::find_if(std::begin(fields), std::end(fields), [&](auto& g) { return g.name == field; });
  if (f == std::end(fields)) throw std::logic_error(fmt::format("a device has no field {}", field));
  const auto scaled = [&](double x, bool whole) {
    return std::clamp(whole ? std::floor(factor * x) : factor * x, f->low, f->high);
  };
  DeviceSpec moved = device;
  const bool same = std::visit(
      [&](auto member) {
        auto& value = moved.*member;
        if constexpr (std::is_same_v<decltype(member), std::vector<double> DeviceSpec::*>) {
          const bool whole = f->member == DeviceMember(&DeviceSpec::gpc_sides);
          for (std::size_t i = 1; i < value.size(); i += 2) value[i] = scaled(value[i], whole);
          if (f->member == DeviceMember(&DeviceSpec::gpc_clocks)) {  // over their mean
            const double mean = mean_of(value);
            for (double& clock : value) clock /= mean;
          }
        } else {
          using Number = std::remove_reference_t<decltype(value)>;
          value = static_cast<Number>(scaled(static_cast<double>(value), std::is_integral_v<Number>));
        }
        return value == device.*member;
      },
      f->member);
  if (same) return std::nullopt;
  return device_from_json_text(to_json(moved).dump(), device.name);
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
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace attest
