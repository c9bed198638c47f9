import ArgumentParser
import Platform
import SystemPackage

/// A path argument; any bytes but zero.
struct PathArgument: ExpressibleByArgument {
  var path: FilePath

  private let isFolder: Bool

  init?(argument: String) {
    guard !argument.isEmpty else { return nil }
    path = RawArguments.path(of: argument)
    isFolder = argument.hasSuffix("/")
  }

  /// Throws for a new file written as a missing folder or named like a part of a store.
  func requirePlace() throws {
    if let store = try StoreFileSet.store(withPart: path, in: FileSystem()) {
      throw ValidationError(
        "\(quoted(path)) is the name of a part of the store \(quoted(store)), and SQLite would take it for one. Choose another name."
      )
    }
    guard isFolder, try FileSystem().status(of: path)?.kind != .directory else { return }
    throw ValidationError("There is no folder \(quoted(path)). Make it first, or leave out the / at the end.")
  }

  static var defaultCompletionKind: CompletionKind { .file() }
}

/// The process's arguments, byte for byte.
///
/// A path may be invalid UTF-8, but the parser takes only text. It gets such an argument with replacements, and
/// `PathArgument` looks up the original bytes.
package enum RawArguments {
  private static let paths = Mutex<[String: FilePath]>([:])

  /// Exits if the system hides the arguments.
  ///
  /// Without `/proc` Swift's runtime has none on Linux, and a verb would silently do nothing.
  static func requireProcFS() {
    guard CommandLine.argc < 1 else { return }
    Terminal.standardError.write(
      "lazaret: the command line cannot be read: /proc is not mounted here. Mount it and try again.\n")
    LazaretCommand.exit(withError: ExitStatus.failed)
  }

  static func take() -> [String] {
    var raw: [[UInt8]] = []
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let start = unsafe CommandLine.unsafeArgv[index] else { break }
      raw.append(unsafe nullTerminatedBytes(start))
    }
    let (texts, standIns) = texts(of: raw)
    paths.withLock { paths in
      for (text, bytes) in standIns { paths[text] = FilePath(rawBytes: bytes) }
    }
    return texts
  }

  /// Returns the arguments' texts, and the original bytes of the replaced ones.
  package static func texts(of arguments: [[UInt8]]) -> (texts: [String], standIns: [String: [UInt8]]) {
    // A replacement must differ from every real argument.
    var taken = Set(arguments.compactMap { String(utf8: $0) })
    var standIns: [String: [UInt8]] = [:]
    var texts: [String] = []
    for argument in arguments {
      if let text = String(utf8: argument) {
        texts.append(text)
        continue
      }
      // Of --option=value only the value is a path.
      var prefix = ""
      var value = argument[...]
      if argument.starts(with: Array("--".utf8)), let equals = argument.firstIndex(of: UInt8(ascii: "=")),
        let name = String(utf8: argument[...equals])
      {
        prefix = name
        value = argument[(equals + 1)...]
      }
      var standIn = String(decoding: value, as: UTF8.self)
      while taken.contains(standIn) || (standIns[standIn] ?? Array(value)) != Array(value) { standIn += "\u{FFFD}" }
      taken.insert(prefix + standIn)
      standIns[standIn] = Array(value)
      texts.append(prefix + standIn)
    }
    return (texts, standIns)
  }

  static func path(of argument: String) -> FilePath {
    paths.withLock { $0[argument] } ?? FilePath(argument)
  }
}
