// SPDX-License-Identifier: Apache-2.0
//
// Whether what the command prints gets to where stdout leads: a disk may be full.
#pragma once

namespace carillon::cli {

/// Fills what is closed of stdin, stdout and stderr, so that no file that is opened later takes its
/// place, and is printed to. What is printed to a stdout that was closed cannot be written.
/// Programs that are started find closed what was.
void open_standard_files();

/// Writes out what has been printed, at the end of a process: the exit status, `status`, or, if all
/// went well but for this, 1, where it cannot be written; then it says so.
int end_output(int status);

}  // namespace carillon::cli
