// SPDX-License-Identifier: Apache-2.0
//
// A shared library made of static ones needs a source of its own.
