/// One variable segment of a route, with the type of its value.
package struct PathParameter<Value: Sendable>: Sendable {
  /// The value that a segment stands for; nil where it is none, and the route does not fit.
  package let read: @Sendable (String) -> Value?

  /// A parameter of any type.
  package init(_ read: @escaping @Sendable (String) -> Value?) { self.read = read }
}

extension PathParameter where Value == String {
  /// Any text of up to 255 bytes.
  package static var text: PathParameter { PathParameter { $0.utf8.count <= 255 ? $0 : nil } }

  /// Letters, digits, `-`, `_` and `.`, as identifiers have them.
  package static var identifier: PathParameter {
    PathParameter { text in
      let isLegal = text.utf8.allSatisfy { byte in
        HeaderFields.Field.isTokenByte(byte) && !"!#$%&'*+^`|~".utf8.contains(byte)
      }
      return isLegal && text.utf8.count <= 128 && !text.hasPrefix(".") ? text : nil
    }
  }
}

extension PathParameter where Value == Int64 {
  /// A whole number, as it is usually written: no sign but a minus, no zeros before it.
  package static var integer: PathParameter {
    PathParameter { text in Int64(text).flatMap { String($0) == text ? $0 : nil } }
  }
}
