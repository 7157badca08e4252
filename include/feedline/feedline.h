// SPDX-License-Identifier: Apache-2.0
#pragma once

// Includes the whole public interface.

#include "feedline/array.h"
#include "feedline/credentials.h"
#include "feedline/dataset.h"
#include "feedline/device.h"
#include "feedline/error.h"
#include "feedline/gpu.h"
#include "feedline/image.h"
#include "feedline/inspection.h"
#include "feedline/loader.h"
#include "feedline/network.h"
#include "feedline/node_cache.h"
#include "feedline/observe.h"
#include "feedline/operation.h"
#include "feedline/order.h"
#include "feedline/page_locks.h"
#include "feedline/plugin/loading.h"
#include "feedline/rows.h"
#include "feedline/sample_files.h"
#include "feedline/sample_function.h"
#include "feedline/sampling.h"
#include "feedline/spans.h"
#include "feedline/stored_object.h"
#include "feedline/stored_source.h"
