public import SystemPackage

/// An error that a tired person can act on: a stable code, what was being done, where, and what to do about it.
///
/// ``Failure`` is the only type that conforms: this is what the failures of all modules have in common. Values of a
/// user's records never appear in any of these strings.
public protocol ReportableError: Error, Sendable, CustomStringConvertible {
  /// What can go wrong in the module that reports it.
  associatedtype Kind: FailureKind

  /// What kind of failure it was.
  var kind: Kind { get }

  /// A stable, machine-readable word, such as `file-not-found`; part of the command line's contract.
  var code: String { get }

  /// What was being done, as an infinitive phrase: `read the store`.
  var operation: String { get }

  /// The file or folder it was being done to, where there is one.
  var path: FilePath? { get }

  /// What went wrong, in one plain sentence without a full stop.
  var detail: String { get }

  /// What the reader can do next, as a full sentence.
  var hint: String { get }

  /// The error of another module that led to this one, where one did.
  var cause: (any ReportableError)? { get }

  /// Whether the environment is at fault (a lock, a permission, a full disk) and not the store.
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

/// The name of an error's type as the code has it, such as `FileError`; nothing that the error says is in it.
package func typeName(of error: any Error) -> String {
  func name(_ type: Any.Type) -> String { String(describing: type) }
  guard let error = error as? any ReportableError else { return name(type(of: error)) }
  // `FileError` is a failure of the kinds `FileErrorKind`, and every module's error is called like that.
  let kinds = name(type(of: error.kind))
  return kinds.hasSuffix("Kind") ? String(kinds.dropLast(4)) : kinds
}

/// A path between double quotes, with control characters and invalid UTF-8 made visible, safe to print on a terminal.
public func quoted(_ path: FilePath) -> String {
  "\"\(printable(path.string))\""
}

/// Text that is safe to print on one line of a terminal: control characters are shown as `\u{…}`.
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
