// SPDX-License-Identifier: Apache-2.0
//
// Nothing: headers that are read once for all tests (tests/CMakeLists.txt) belong to some file.
