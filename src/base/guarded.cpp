// SPDX-License-Identifier: Apache-2.0
#include "base/guarded.h"

#include <cerrno>
#include <new>
#include <string>

namespace feedline::base {

Error error_of(const std::exception* exception) noexcept {
  Error error;
  try {
    if (dynamic_cast<const std::bad_alloc*>(exception) != nullptr) {
      error.code = ErrorCode::kStorage;
      error.system_errno = ENOMEM;
      error.what = "out of memory";
    } else {
      error.what =
          std::string("internal error: ") + (exception ? exception->what() : "an exception of an unknown type");
    }
  } catch (const std::bad_alloc&) {  // for the words; the code says enough
  }
  return error;
}

}  // namespace feedline::base
