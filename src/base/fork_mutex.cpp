// SPDX-License-Identifier: Apache-2.0
#include "base/fork_mutex.h"

#include <pthread.h>

namespace feedline {
namespace {

std::atomic<std::uint32_t> generation{0};

[[maybe_unused]] const int at_fork =
    pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

std::uint32_t fork_generation() { return generation.load(std::memory_order_relaxed); }

}  // namespace feedline
