public import SystemPackage

/// An error that a tired person can act on: a stable code, what was being done, where, and what to do about it.
///
/// Each module has one error type, and every one of them conforms. Values of a user's records never appear in any of
/// these strings.
public protocol ReportableError: Error, Sendable, CustomStringConvertible {
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

  /// Whether the surroundings are at fault (a lock, a permission, a full disk) and not the store.
  ///
  /// Such an error never leads to a quarantine.
  var isEnvironmental: Bool { get }
}

extension ReportableError {
  /// False unless an error type says otherwise.
  public var isEnvironmental: Bool { false }

  /// The error on one line: `cannot read the store "App.sqlite": … [code]. Hint`.
  public var description: String {
    let place = path.map { " \(quoted($0))" } ?? ""
    return "cannot \(operation)\(place): \(detail) [\(code)]. \(hint)"
  }
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
