// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "feedline/plugin/guard.h"

extern const feedline_storage_v1 kStorage;
extern const feedline_format_v1 kFormat;
extern const feedline_codec_v1 kCodec;
extern const feedline_operation_v1 kPosterize;
extern const feedline_operation_v1 kHalve;
