// SPDX-License-Identifier: Apache-2.0

// Runs one case under callgrind.
//
// usage: gate_cases --list           prints the cases, one per line
//        gate_cases --environment    prints everything else that affects the counts, as JSON
//        gate_cases CASE             runs a case; callgrind counts in feedline_gate_measured()

// before Highway's other headers
#include "base/simd_targets.h"

#include <cstdio>

#include <gnu/libc-version.h>
#include <jpeglib.h>
#include <zlib.h>

#include <cstdlib>
#include <string_view>

#include "gate/case.h"

namespace feedline::gate {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "gate_cases: %s\n", what);
  std::exit(3);
}

namespace {

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& some : {image_cases(), store_cases(), order_cases()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

#define FEEDLINE_TEXT(x) #x
#define FEEDLINE_TEXT_OF(x) FEEDLINE_TEXT(x)

// Valgrind does not support AVX-512, so AVX2 is used on every machine.
const char* pin_target() {
#if HWY_ARCH_X86
  hwy::DisableTargets(HWY_AVX2 - 1);  // Highway's bits are ordered from best to worst
#endif
  return hwy::TargetName(hwy::SupportedTargets() & -hwy::SupportedTargets());
}

void print_environment(const char* target) {
  std::printf(
      "{\"target\": \"%s\", \"compiler\": \"%s\", \"libc\": \"%s\", \"libjpeg\": \"%s\", \"zlib\": \"%s\", "
      "\"highway\": \"%s\"}\n",
      target, __VERSION__, gnu_get_libc_version(), FEEDLINE_TEXT_OF(LIBJPEG_TURBO_VERSION), zlibVersion(),
      FEEDLINE_HIGHWAY);
}

}  // namespace
}  // namespace feedline::gate

// Callgrind counts while this function runs.
extern "C" [[gnu::noinline]] void feedline_gate_measured(const std::function<void()>& work) {
  work();
  asm volatile("" ::: "memory");  // prevents a tail call, which would not be counted
}

int main(int argc, char** argv) {
  using namespace feedline::gate;
  const std::string_view wanted = argc == 2 ? argv[1] : "";
  const char* const target = pin_target();
  if (wanted == "--environment") {
    print_environment(target);
    return 0;
  }
  for (const Case& one : all_cases()) {
    if (wanted == "--list") {
      std::printf("%s\n", std::string(one.name).c_str());
    } else if (wanted == one.name) {
      const auto work = one.prepare();
      work();
      feedline_gate_measured(work);
      return 0;
    }
  }
  if (wanted == "--list") return 0;
  std::fprintf(stderr, "usage: gate_cases --list | --environment | CASE\n");
  return 2;
}
