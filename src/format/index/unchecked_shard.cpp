// SPDX-License-Identifier: Apache-2.0
#include "format/index/unchecked_shard.h"

#include "storage/version.h"

namespace feedline::format {

Result<storage::Piece> UncheckedShard::piece() const {
  FEEDLINE_TRY(std::shared_ptr<const storage::Reader> reader, shard_.stored_reader());
  return storage::Piece{std::move(reader), {}, 0, 1, {}};
}

Result<void> UncheckedShard::note(Result<void> came) const {
  if (came) {
    shard_.note_checked();
    return came;
  }
  Error& error = came.error();
  doubt_(error);
  if (!storage::is_of_change(error))
    error.what = "cannot check whether the shard has changed since it was indexed: " + error.what;
  error.where.dataset = source_;
  error.where.shard = shard_.name();
  return came;
}

}  // namespace feedline::format
