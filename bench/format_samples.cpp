// SPDX-License-Identifier: Apache-2.0

// Measures the time per photo for each format, with one thread: the same photos with the same crops, alternating
// between several sources after a few photos, so that other work on the machine affects all equally. Photos are read,
// decoded, cropped, resized, flipped and normalised, as in a loader's thread.
//
// usage: format_samples ROUNDS NAME=SOURCE...; prints a line of JSON for each source: CPU microseconds per photo, and
// the first source's time relative to it, in each round.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/cpu_clock.h"
#include "pipeline/sample/recipe.h"
#include "pipeline/sample/sample_loader.h"

namespace {

using namespace feedline;

constexpr std::uint64_t kTurn = 16;  // photos per turn of a source, so that its scratch memory stays in the cache

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(2);
}

class Photos {
 public:
  Photos(std::string name, const std::string& source) : name_(std::move(name)) {
    auto format = format::open(source, {});
    if (!format) fail(name_ + ": " + format.error().what);
    samples_ = (*format)->size();
    auto recipe = pipeline::make_recipe({source, std::move(*format)},
                                        {op::RandomResizedCrop{{224, 224}}, op::RandomHorizontalFlip{},
                                         op::Normalize{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}}},
                                        std::nullopt, Layout::kNchw);
    if (!recipe) fail(name_ + ": " + recipe.error().what);
    recipe_ = std::move(*recipe);
    for (Side& side : sides_) {
      side.loader = std::make_unique<pipeline::SampleLoader>(recipe_, nullptr);
      for (const FieldSpec& field : recipe_->schema) side.memory.emplace_back(field.array.bytes() + kSlack);
      for (std::size_t i = 0; i < side.memory.size(); ++i)
        side.rows.push_back(memory::Row{{side.memory[i].data(), recipe_->schema[i].array}});
    }
  }

  const std::string& name() const { return name_; }
  std::uint64_t samples() const { return samples_; }
  // Processes two photos alternately, as a loader's thread does.
  void load(const std::array<base::SampleKey, 2>& keys) {
    std::array<pipeline::SampleLoader::Job, 2> jobs;
    std::array<Result<void>, 2> results;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      jobs[i] = {.index = keys[i].sample, .key = keys[i], .rows = sides_[i].rows};
      results[i] = sides_[i].loader->begin(jobs[i]);
    }
    pipeline::SampleLoader::finish_in_turn(*sides_[0].loader, jobs[0], *sides_[1].loader, jobs[1], results);
    for (const auto& result : results)
      if (!result) fail(name_ + ": " + result.error().what);
  }

  std::uint64_t cpu_ns = 0;  // in this round

 private:
  static constexpr std::size_t kSlack = 64;
  struct Side {
    std::unique_ptr<pipeline::SampleLoader> loader;
    std::vector<std::vector<std::byte>> memory;
    std::vector<memory::Row> rows;
  };
  const std::string name_;
  std::uint64_t samples_ = 0;
  std::shared_ptr<const pipeline::Recipe> recipe_;
  std::array<Side, 2> sides_;
};

// An epoch of all sources, in the same order.
void run(std::vector<std::unique_ptr<Photos>>& all, std::uint64_t epoch) {
  std::vector<std::uint64_t> order(all.front()->samples());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, std::mt19937_64(epoch));
  for (const auto& photos : all) photos->cpu_ns = 0;
  const auto key = [epoch](std::uint64_t sample) {
    return base::SampleKey{.seed = 7, .epoch = epoch, .sample = sample};
  };
  for (std::uint64_t begin = 0, turn = 0; begin + kTurn <= order.size(); begin += kTurn, ++turn)
    for (std::size_t i = 0; i < all.size(); ++i) {
      Photos& photos = *all[(i + turn) % all.size()];
      const std::uint64_t before = base::thread_cpu_ns();
      for (std::uint64_t at = begin; at < begin + kTurn; at += 2) photos.load({key(order[at]), key(order[at + 1])});
      photos.cpu_ns += base::thread_cpu_ns() - before;
    }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) fail("usage: format_samples ROUNDS NAME=SOURCE...");
  const auto rounds = static_cast<std::uint64_t>(std::atoi(argv[1]));
  std::vector<std::unique_ptr<Photos>> all;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t end = argument.find('=');
    if (end == argument.npos) fail("expected NAME=SOURCE, got " + argument);
    all.push_back(std::make_unique<Photos>(argument.substr(0, end), argument.substr(end + 1)));
    if (all.back()->samples() != all.front()->samples()) fail(all.back()->name() + " has other photos");
  }
  run(all, 0);  // warms the page cache
  std::vector<std::vector<double>> us(all.size());
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    run(all, round);
    const auto photos = static_cast<double>(all.front()->samples() / kTurn * kTurn);
    for (std::size_t i = 0; i < all.size(); ++i) us[i].push_back(static_cast<double>(all[i]->cpu_ns) / 1e3 / photos);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::printf("{\"name\": \"%s\", \"cpu_us_per_image\": [", all[i]->name().c_str());
    for (std::size_t round = 0; round < us[i].size(); ++round)
      std::printf("%s%.2f", round == 0 ? "" : ", ", us[i][round]);
    std::printf("], \"ratios\": [");
    for (std::size_t round = 0; round < us[i].size(); ++round)
      std::printf("%s%.4f", round == 0 ? "" : ", ", us[0][round] / us[i][round]);
    std::printf("]}\n");
  }
}
