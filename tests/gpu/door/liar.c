/* A plug-in that does wrong what its option says: "./libliar.so:WORD". At load and before create() there are no
 * options, so those wrongs are chosen by the environment's ATTEST_LIAR. What it does not do wrong it does as
 * docs/examples/cpu_plugin.c does, whose source stands below under other names. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define attest_kernel honest_kernel
#include "../../../docs/examples/cpu_plugin.c"
#undef attest_kernel
ATTEST_EXPORT const attest_kernel_api* attest_kernel(uint32_t host_abi_version);

static char word[64];

static int is(const char* other) { return strcmp(word, other) == 0; }
static int at_load(const char* other) {
  const char* const wrong = getenv("ATTEST_LIAR");
  return wrong != NULL && strcmp(wrong, other) == 0;
}

static void hang(void) {
  for (;;) usleep(10000);
}

static void lower(int resource, rlim_t to) {
  const struct rlimit limit = {to, to};
  setrlimit(resource, &limit);
}

__attribute__((constructor)) static void load(void) {
  if (at_load("crash_at_load")) raise(SIGSEGV);
  if (at_load("exit_at_load")) exit(0);
  if (at_load("close_at_load"))
    for (int descriptor = 3; descriptor < 256; ++descriptor) close(descriptor);
  if (at_load("limit_at_load")) lower(RLIMIT_AS, 1 << 20);
  if (at_load("chatter_at_load")) {
    puts("{\"done\": 1}");
    fflush(stdout);
  }
}

static int32_t liar_create(const char* options, void** self, attest_text* message) {
  *self = word;
  snprintf(word, sizeof word, "%s", options);
  if (is("invalid_option")) {
    snprintf(message->data, message->capacity, "tile: 7 is no power of two");
    return ATTEST_INVALID;
  }
  if (is("no_environment")) {
    snprintf(message->data, message->capacity, "no such GPU here");
    return ATTEST_NO_ENVIRONMENT;
  }
  if (is("create_crash")) abort();
  return ATTEST_OK;
}

static int32_t liar_supports(void* self, const attest_problem* p, attest_text* why_not) {
  if (is("supports_crash")) raise(SIGSEGV);
  if (is("supports_hang")) hang();
  if (is("supports_status")) return 17;
  if (is("supports_nothing")) {
    snprintf(why_not->data, why_not->capacity, "batch: %lld is not to my liking", (long long)p->batch);
    return ATTEST_UNSUPPORTED;
  }
  if (is("no_reason")) return ATTEST_UNSUPPORTED;
  if (is("garbage_reason")) memset(why_not->data, 0xC3, why_not->capacity);
  if (is("garbage_reason")) return ATTEST_UNSUPPORTED;
  return supports(self, p, why_not);
}

static int32_t liar_numerics(void* self, const attest_problem* p, attest_numerics* n, attest_text* message) {
  (void)self, (void)p, (void)message;
  if (is("numerics_negative")) n->u_P = -1;
  if (is("numerics_nan")) n->eps_exp = NAN;
  if (is("numerics_wide")) n->u_acc = 1;
  if (is("numerics_chain")) n->chain = 0;
  return ATTEST_OK;
}

static int32_t liar_workspace(void* self, const attest_problem* p, int32_t pass, int64_t* bytes, attest_text* message) {
  const int32_t status = workspace(self, p, pass, bytes, message);
  if (is("workspace_negative")) *bytes = -5;
  if (is("workspace_huge")) *bytes = INT64_MAX;
  return status;
}

static int32_t liar_forward(void* self, const attest_problem* p, const attest_forward* args, attest_text* message) {
  if (is("lies_about_support")) {
    snprintf(message->data, message->capacity, "not with %lld keys", (long long)p->seqlen_k);
    return ATTEST_UNSUPPORTED;
  }
  if (is("fails")) return ATTEST_FAILED;
  if (is("lost")) {
    snprintf(message->data, message->capacity, "the device is gone");
    return ATTEST_LOST;
  }
  if (is("run_crash")) raise(SIGSEGV);
  if (is("run_sleep")) usleep(200 * 1000);
  if (is("run_hang")) hang();
  if (is("run_exit")) exit(0);
  if (is("run_fork")) fork();
  if (is("run_close"))
    for (int descriptor = 3; descriptor < 256; ++descriptor) close(descriptor);
  if (is("limits_memory")) lower(RLIMIT_AS, 1 << 20);
  if (is("limits_time")) lower(RLIMIT_CPU, 1 << 20); /* a limit that is reached ends the process before attest looks */
  if (is("limits_files")) lower(RLIMIT_FSIZE, 0);
  if (is("limits_processes")) lower(RLIMIT_NPROC, 0);
  if (is("limits_descriptors")) lower(RLIMIT_NOFILE, 0);
  if (is("limits_stack")) lower(RLIMIT_STACK, 1 << 12);
  if (is("changes_arguments")) ((attest_forward*)args)->q.strides[1] = 1;
  if (is("hazard")) args->hazard(args->host, "K read before its copy arrived");
  if (is("past_workspace")) ((float*)args->workspace)[p->seqlen_k] = 1;
  if (is("unwritten")) return ATTEST_OK;
  const int32_t status = forward(self, p, args, message);
  if (is("out_of_bounds")) *((float*)args->o.data - 1) = 1;
  if (is("far_out_of_bounds")) ((float*)args->o.data)[10000] = 1;
  if (is("far_before")) ((float*)args->q.data)[-10000] = 1;
  if (is("writes_input")) *(float*)args->q.data += 1;
  if (is("wrong_lse")) *(float*)args->lse.data += 1;
  if (is("neighbour")) {
    volatile char* const block = malloc(64);
    for (int i = -64; i < 256; ++i) block[i] = 0x41;
  }
  return status;
}

/* An edition that is to come: longer structs, of which an older attest takes what it knows. */
struct longer_capability {
  attest_capability known;
  int64_t unknown[4];
};
struct longer_api {
  attest_kernel_api known;
  int64_t unknown[4];
};

const attest_kernel_api* attest_kernel(uint32_t host_abi_version) {
  static struct longer_capability record;
  static struct longer_api table;
  static const char long_name[100] = {[0 ... 98] = 'x'};
  (void)host_abi_version;
  record.known = capability;
  table.known = (attest_kernel_api){.struct_size = sizeof(attest_kernel_api),
                                    .abi_version = ATTEST_KERNEL_ABI,
                                    .capability = &record.known,
                                    .create = liar_create,
                                    .supports = liar_supports,
                                    .numerics = liar_numerics,
                                    .workspace = liar_workspace,
                                    .forward = liar_forward};
  if (at_load("null_table")) return NULL;
  if (at_load("hang_at_symbol")) hang();
  if (at_load("version")) table.known.abi_version = 2;
  if (at_load("table_small")) table.known.struct_size = 40;
  if (at_load("table_garbage")) table.known.struct_size = 0xFFFFFFFF;
  if (at_load("record_small")) record.known.struct_size = 8;
  if (at_load("longer")) {
    table.known.struct_size = sizeof table;
    record.known.struct_size = sizeof record;
    memset(table.unknown, 0x41, sizeof table.unknown);
    memset(record.unknown, 0x41, sizeof record.unknown);
  }
  if (at_load("null_record")) table.known.capability = NULL;
  if (at_load("null_forward")) table.known.forward = NULL;
  if (at_load("wild_pointer")) table.known.capability = (const attest_capability*)16;
  if (at_load("null_name")) record.known.name = NULL;
  if (at_load("long_name")) record.known.name = long_name;
  if (at_load("no_dtypes")) record.known.dtypes = 0;
  if (at_load("unknown_dtype")) record.known.dtypes = 0x80;
  if (at_load("unknown_device")) record.known.device = 9;
  if (at_load("no_channels")) record.known.channels = 0;
  if (at_load("gradients")) record.known.channels |= ATTEST_CHANNEL_GRADIENTS;
  if (at_load("lse_base")) record.known.lse_base = 1;
  if (at_load("lse_of_empty_row")) record.known.lse_of_empty_row = NAN;
  if (at_load("arithmetic")) record.known.arithmetic = 5;
  if (at_load("cuda")) record.known.device = ATTEST_DEVICE_CUDA;
  return &table.known;
}
