public import SystemPackage

/// An error to act on: a stable code, the operation, the place and a remedy.
///
/// ``Failure`` is the only conforming type. No string holds values of a user's records.
public protocol ReportableError: Error, Sendable, CustomStringConvertible {
  associatedtype Kind: FailureKind

  var kind: Kind { get }

  /// A stable, machine-readable word of the command line's contract, such as `file-not-found`.
  var code: String { get }

  /// The failed operation, as an infinitive phrase: `read the store`.
  var operation: String { get }

  /// The file or folder concerned.
  var path: FilePath? { get }

  /// The problem, in one plain sentence without a full stop.
  var detail: String { get }

  /// The next step for the reader, as a full sentence.
  var hint: String { get }

  /// The other module's error that led to this one.
  var cause: (any ReportableError)? { get }

  /// Whether the environment (a lock, a permission, a full disk) is at fault, not the store.
  ///
  /// Such an error never leads to a quarantine.
  var isEnvironmental: Bool { get }
}

extension ReportableError {
  /// The error on one line: `cannot read the store "App.sqlite": … [code]. Hint`.
  public var description: String {
    let place = path.map { " \(quoted($0))" } ?? ""
    return "cannot \(operation)\(place): \(detail) [\(code)]. \(hint)"
  }
}

/// Returns an error's type name in code, such as `FileError`, without its values.
package func typeName(of error: any Error) -> String {
  func name(_ type: Any.Type) -> String { String(describing: type) }
  guard let error = error as? any ReportableError else { return name(type(of: error)) }
  // By convention a `FileError` is a failure of `FileErrorKind`.
  let kinds = name(type(of: error.kind))
  return kinds.hasSuffix("Kind") ? String(kinds.dropLast(4)) : kinds
}

/// Quotes a path for a terminal; control characters and invalid UTF-8 become visible.
public func quoted(_ path: FilePath) -> String {
  "\"\(printable(path.string))\""
}

/// Escapes control characters as `\u{…}`, for one line of a terminal.
public func printable(_ text: String) -> String {
  guard text.unicodeScalars.contains(where: isControl) else { return text }
  var result = ""
  for scalar in text.unicodeScalars {
    if isControl(scalar) {
      result += "\\u{\(String(scalar.value, radix: 16))}"
    } else {
      result.unicodeScalars.append(scalar)
    }
  }
  return result
}

private func isControl(_ scalar: Unicode.Scalar) -> Bool {
  switch scalar.properties.generalCategory {
  case .control, .format, .lineSeparator, .paragraphSeparator: true
  default: false
  }
}
