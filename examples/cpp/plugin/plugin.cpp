// SPDX-License-Identifier: Apache-2.0
#include "parts.h"

int feedline_register_v1(const feedline_registry_v1* registry, feedline_message* message) {
  int code = registry->add_storage(registry->host, &kStorage, message);
  if (code == FEEDLINE_OK) code = registry->add_format(registry->host, &kFormat, message);
  if (code == FEEDLINE_OK) code = registry->add_codec(registry->host, &kCodec, message);
  if (code == FEEDLINE_OK) code = registry->add_operation(registry->host, &kPosterize, message);
  if (code == FEEDLINE_OK) code = registry->add_operation(registry->host, &kHalve, message);
  return code;
}
