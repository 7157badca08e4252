// SPDX-License-Identifier: Apache-2.0
#include "data/open_options.h"

#include "interop/described.h"
#include "interop/enum_names.h"

namespace feedline::python {

template <>
inline constexpr auto kMembers<CacheLimit> = std::tuple(Member{"bytes", &CacheLimit::bytes},
                                                        Member{"share", &CacheLimit::share});

template <>
inline constexpr auto kMembers<ListedShard> = std::tuple(Member{"name", &ListedShard::name},
                                                         Member{"bytes", &ListedShard::bytes},
                                                         Member{"sha256", &ListedShard::sha256});

template <>
inline constexpr auto kMembers<AnnotationOptions> = std::tuple(Member{"images", &AnnotationOptions::images},
                                                               Member{"split", &AnnotationOptions::split},
                                                               Member{"crowd", &AnnotationOptions::crowd});

template <>
inline constexpr auto kMembers<OpenOptions> = std::tuple(
    Member{"format", &OpenOptions::format}, Member{"fields", &OpenOptions::fields},
    Member{"index_directory", &OpenOptions::index_directory}, Member{"missing", &OpenOptions::missing},
    Member{"cache_directory", &OpenOptions::cache_directory}, Member{"cache_limit", &OpenOptions::cache_limit},
    Member{"listing_age", &OpenOptions::listing_age}, Member{"allow_commands", &OpenOptions::allow_commands},
    Member{"verify", &OpenOptions::verify}, Member{"listed_shards", &OpenOptions::listed_shards},
    Member{"hedge", &OpenOptions::hedge}, Member{"checkpoints", &OpenOptions::checkpoints},
    Member{"annotations", &OpenOptions::annotations}, Member{"documents", &OpenOptions::documents});

OpenOptions open_options_of(const nanobind::dict& arguments) { return options_of<OpenOptions>(arguments, "open"); }

}  // namespace feedline::python
