// SPDX-License-Identifier: Apache-2.0

// One epoch over a dataset: feedline_epoch SOURCE [BATCH_SIZE]

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "feedline/feedline.h"

namespace {

int fail(const feedline::Error& error) {
  std::fprintf(stderr, "feedline_epoch: %s\n", error.message().c_str());
  return error.code == feedline::ErrorCode::kConfig ? 2 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: feedline_epoch SOURCE [BATCH_SIZE]\n");
    return 2;
  }
  const auto dataset = feedline::open(argv[1]);
  if (!dataset) return fail(dataset.error());
  auto loader =
      dataset->random_resized_crop(224)
          .random_horizontal_flip()
          .normalize({0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f})
          .loader({.batch_size = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 64, .shuffle = true, .seed = 0});
  if (!loader) return fail(loader.error());
  const auto plan = loader->explain();
  if (!plan) return fail(plan.error());
  std::fputs(plan->c_str(), stdout);

  const auto started = std::chrono::steady_clock::now();
  std::uint64_t samples = 0;
  while (true) {
    const feedline::Result<std::optional<feedline::Batch>> batch = loader->next();
    if (!batch) return fail(batch.error());
    if (!*batch) break;  // the epoch is over
    samples += (*batch)->rows();
    if ((*batch)->index() > 0) continue;
    for (const feedline::BatchField& field : (*batch)->fields()) {
      const feedline::ArraySpec& spec = field.array.spec;
      std::printf("first batch  %.*s: %s %s\n", static_cast<int>(field.name.size()), field.name.data(),
                  std::string(feedline::name_of(spec.dtype)).c_str(), spec.shape.to_string().c_str());
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  std::printf("%llu samples, %.0f per second\n", static_cast<unsigned long long>(samples),
              static_cast<double>(samples) / seconds);
  return 0;
}
