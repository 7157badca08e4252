// SPDX-License-Identifier: Apache-2.0
#include "consumer/epoch_selection.h"

#include <algorithm>
#include <string>
#include <utility>

#include "plan/mixture.h"

namespace feedline::consumer {
namespace {

std::uint64_t fingerprint_of(const std::shared_ptr<const Sampling>& sampling) {
  return sampling ? sampling->fingerprint() : 0;
}

bool has_weights(const plan::Mixture& mixture, const std::vector<double>& weights) {
  return std::ranges::equal(mixture.parts, weights, {}, &plan::Part::weight);
}

Result<std::shared_ptr<const plan::Mixture>> resumed(const plan::Mixture& mixture, const MixState& state) {
  if (state.used.size() != mixture.parts.size())
    return config_error("load_state_dict: the state is damaged: it has " + std::to_string(state.used.size()) +
                        " datasets, but the mixture has " + std::to_string(mixture.parts.size()));
  FEEDLINE_TRY(auto weighted, plan::reweighted(mixture, state.weights, state.since));
  auto made = std::make_shared<plan::Mixture>(*weighted);
  made->used = state.used;
  return made;
}

}  // namespace

EpochSelection::EpochSelection(std::shared_ptr<plan::CurrentSelection> current, std::uint64_t samples,
                               std::uint64_t world_size)
    : current_(std::move(current)),
      mixture_(current_ ? current_->get().mixture : nullptr),
      samples_(samples),
      world_size_(world_size) {}

Result<void> EpochSelection::set_sampling(std::shared_ptr<const Sampling> sampling) {
  if (!now().sampling) return config_error("set_weights: the loader was created without weights");
  if (sampling->samples() != samples_)
    return config_error("set_weights: one weight per sample is needed: " + std::to_string(sampling->samples()) +
                        " were given for " + std::to_string(samples_) + " samples");
  if (sampling->positions() < world_size_)
    return config_error("loader: world_size=" + std::to_string(world_size_) + " exceeds the " +
                        std::to_string(sampling->positions()) +
                        " samples of an epoch, so some ranks would have no samples");
  const std::lock_guard lock(mutex_);
  std::swap(pending_.sampling, sampling);
  return {};
}

Result<void> EpochSelection::set_mix_weights(const std::vector<double>& weights) {
  if (!mixture_)
    return config_error(
        "set_weights: this loader has no weights; create it with weights= or balanced=True, or from feedline.mix()");
  FEEDLINE_CHECK_OK(plan::reweighted(*mixture_, weights, 0));
  const std::lock_guard lock(mutex_);
  pending_.mix_weights = weights;
  return {};
}

EpochSelection::Pending EpochSelection::pending() const {
  const std::lock_guard lock(mutex_);
  return pending_;
}

plan::Selection EpochSelection::now() const { return current_ ? current_->get() : plan::Selection(); }

plan::Selection EpochSelection::next(std::uint64_t epoch) const {
  plan::Selection selection = now();
  const Pending pending = this->pending();
  if (pending.sampling) selection.sampling = pending.sampling;
  if (pending.mix_weights.empty() || has_weights(*selection.mixture, pending.mix_weights)) return selection;
  if (auto mixture = plan::reweighted(*selection.mixture, pending.mix_weights, epoch))  // checked when they were set
    selection.mixture = std::move(*mixture);
  return selection;
}

void EpochSelection::begin(std::uint64_t epoch) {
  if (!current_) return;
  current_->set(next(epoch));
  const std::lock_guard lock(mutex_);
  pending_ = {};
}

Result<plan::Selection> EpochSelection::taken_with(const LoaderState& state) const {
  const auto refuse = [](const std::string& then, const std::string& advice) {
    return config_error("load_state_dict: the state was saved with " + then + "; " + advice);
  };
  plan::Selection selection{mixture_, now().sampling};
  const Pending pending = this->pending();
  if (state.sampling == 0 && selection.sampling)
    return refuse("every sample once per epoch", "create the loader without weights=, balanced= and sampler=");
  if (state.sampling != 0 && !selection.sampling)
    return refuse("weights=, balanced= or sampler=", "create the loader with the same arguments");
  if (pending.sampling && fingerprint_of(pending.sampling) == state.sampling) selection.sampling = pending.sampling;
  if (fingerprint_of(selection.sampling) != state.sampling)
    return refuse("sample weights, labels or indices that differ from the loader's",
                  "create the loader with the same ones, or pass the state's weights to set_weights() first");
  if (!state.mix) return selection;
  if (!mixture_) return refuse("a mixture", "create the loader from a mixture of the same datasets");
  FEEDLINE_TRY(selection.mixture, resumed(*mixture_, *state.mix));
  return selection;
}

void EpochSelection::resume(const plan::Selection& selection) {
  if (!current_) return;
  current_->set(selection);
  const std::lock_guard lock(mutex_);
  if (pending_.sampling == selection.sampling) pending_.sampling.reset();
}

void describe(const plan::Selection& selection, LoaderState& state) {
  state.sampling = fingerprint_of(selection.sampling);
  if (!selection.mixture || selection.mixture->used.empty()) return;
  const plan::Mixture& mixture = *selection.mixture;
  state.mix = MixState{.weights = {}, .since = mixture.since, .used = mixture.used};
  for (const plan::Part& part : mixture.parts) state.mix->weights.push_back(part.weight);
}

}  // namespace feedline::consumer
