// SPDX-License-Identifier: Apache-2.0
#pragma once

// How libjpeg's errors come back to us: it leaves the failing call by longjmp. Whoever calls it does so after setjmp()
// on the trap's `jump`, in steps that hold nothing that needs a destructor.

#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include <string>

namespace feedline::decode {

struct ErrorTrap {
  jpeg_error_mgr callbacks;  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

// Why libjpeg gave up, in words for people: kinds of JPEG that it does not decode by their names, else its own message.
std::string reason_of(const ErrorTrap& trap);

// For `jpeg.err`. Nothing is printed; warnings that cost pixels are errors.
jpeg_error_mgr* arm(ErrorTrap& trap);

}  // namespace feedline::decode
