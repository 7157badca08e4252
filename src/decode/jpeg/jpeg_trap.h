// SPDX-License-Identifier: Apache-2.0
#pragma once

// Captures libjpeg's errors, for which libjpeg exits the failing call by longjmp. Callers first call setjmp() with the
// trap's `jump`, and must not have objects that need a destructor.

#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include <string>

namespace feedline::decode {

struct ErrorTrap {
  jpeg_error_mgr callbacks;  // must be first: libjpeg passes back a pointer to it
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

// Returns the reason why libjpeg failed, as text for users: the name of an unsupported kind of JPEG, or libjpeg's
// message.
std::string reason_of(const ErrorTrap& trap);

// For `jpeg.err`. Nothing is printed, and warnings about lost pixels are errors.
jpeg_error_mgr* arm(ErrorTrap& trap);

}  // namespace feedline::decode
