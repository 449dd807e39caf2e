// SPDX-License-Identifier: Apache-2.0
//
// Elements the processor has no type for, and access to elements at any address.
#pragma once

#include <cstddef>
#include <cstring>

namespace carillon {

/// Element of MINLOC and MAXLOC; has the padding of the C struct { value; index; }.
template <class Value, class Index>
struct Located {
  Value value;
  Index index;
};

/// Both parts of a C complex number.
template <class Part>
struct Complex {
  Part real;
  Part imag;
};

template <class Element>
inline Element load_element(const void* array, std::size_t i) {
  Element element;
  std::memcpy(&element, static_cast<const std::byte*>(array) + i * sizeof(Element),
              sizeof(Element));
  return element;
}

template <class Element>
inline void store_element(void* array, std::size_t i, const Element& element) {
  std::memcpy(static_cast<std::byte*>(array) + i * sizeof(Element), &element, sizeof(Element));
}

}  // namespace carillon
