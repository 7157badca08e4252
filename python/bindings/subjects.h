// SPDX-License-Identifier: Apache-2.0
#pragma once

// One function per subject, each in the .cpp of that name; module.cpp calls them in this order.

#include <nanobind/nanobind.h>

namespace feedline::python {

void bind_inspection(nanobind::module_& module);
void bind_dataset(nanobind::module_& module);  // with its operations, from operations.cpp
void bind_map(nanobind::module_& module);      // functions of the user's, after bind_dataset()
void bind_sources(nanobind::module_& module);  // arrays, tokens, given files
void bind_batch(nanobind::module_& module);
void bind_device_array(nanobind::module_& module);  // arrays of batches, on whichever device
void bind_loader(nanobind::module_& module);
void bind_image(nanobind::module_& module);
void bind_pixel_operation(nanobind::module_& module);  // for tests and benchmarks
void bind_order(nanobind::module_& module);
void bind_gather(nanobind::module_& module);
void bind_mix(nanobind::module_& module);
void bind_spans(nanobind::module_& module);
void bind_observe(nanobind::module_& module);     // what `feedline diagnose` watches with
void bind_machine(nanobind::module_& module);     // what this machine lets a process use
void bind_page_locks(nanobind::module_& module);  // memory that a GPU reads where it lies
void bind_opens(nanobind::module_& module);
void bind_foreign_storage(nanobind::module_& module);  // what a library of Python's reads
void bind_foreign_images(nanobind::module_& module);   // images that a library of Python's decodes
void bind_node_cache(nanobind::module_& module);
void bind_network(nanobind::module_& module);        // what reading over a network took
void bind_stored_source(nanobind::module_& module);  // what is copied and proved as bytes
void bind_stored_object(nanobind::module_& module);  // what is written where a URL leads

}  // namespace feedline::python
