import Foundation
package import StoreFiles
package import SystemPackage

extension BackupPolicy {
  /// The policy of a home: its file's, or the usual one where there is none.
  ///
  /// - Throws: `backup-policy-unreadable` for a file that says something that cannot be meant; nothing of it is guessed.
  package static func load(
    home: FilePath, in fileSystem: FileSystem = FileSystem()
  ) throws(BackupError) -> BackupPolicy {
    let file = home.appending(fileName)
    let bytes: [UInt8]
    do throws(FileError) {
      guard try fileSystem.status(of: file) != nil else { return BackupPolicy() }
      bytes = try fileSystem.contents(of: file, limit: 1 << 20)
    } catch {
      throw BackupError(error)
    }
    return try BackupPolicy(json: bytes, at: file)
  }

  /// Writes the policy into a home, in place of the one that is there.
  package func save(home: FilePath, in fileSystem: FileSystem = FileSystem()) throws(BackupError) {
    let file = home.appending(Self.fileName)
    if let words = contradiction { throw .policy(words, at: file) }
    do throws(FileError) {
      let bytes = try JSON.bytes(of: self, to: "write the policy", at: file)
      try fileSystem.makeDirectory(home)
      try fileSystem.writeAtomically(bytes, to: file, replacing: true)
    } catch {
      throw BackupError(error)
    }
  }

  /// Reads a policy, and refuses what it does not know: a rule with a slip in its name would otherwise keep nothing.
  ///
  /// - Parameter path: the file, for errors.
  package init(json bytes: [UInt8], at path: FilePath? = nil) throws(BackupError) {
    struct Head: Decodable {
      var format: String
      var version: Int
    }
    let decoder = JSONDecoder()
    do {
      let head = try decoder.decode(Head.self, from: Data(bytes))
      guard head.format == Self.formatName else { throw BackupError.policy("it is no backup policy", at: path) }
      guard head.version == 1 else {
        throw BackupError.policy("it is of version \(head.version), and this software knows version 1", at: path)
      }
      if let key = try Self.unknownKey(in: bytes) {
        throw BackupError.policy("it has a key \"\(printable(key))\" that no policy has", at: path)
      }
      self = try decoder.decode(BackupPolicy.self, from: Data(bytes))
    } catch let error as BackupError {
      throw error
    } catch let error as DecodingError {
      throw .policy(error.plainWords, at: path)
    } catch {
      throw .policy("it is not JSON", at: path)
    }
    if let words = contradiction { throw .policy(words, at: path) }
  }

  /// What in it cannot be meant; nil for a sound policy.
  private var contradiction: String? {
    for (name, number) in [("everyHours", everyHours), ("everyOpenings", everyOpenings)] {
      if let number, !(1...1_000_000).contains(number) { return "\(name) must be from 1 to 1000000, or null for never" }
    }
    guard (0...36500).contains(trashDays) else { return "trashDays must be from 0 to 36500" }
    guard compression.has(level: level) else {
      return "level must be \(compression.levelWords)" + (compression == .gzip ? "" : " for \(compression.rawValue)")
    }
    if let encryptTo {
      guard (1...100).contains(encryptTo.count) else { return "encryptTo must name from 1 to 100 keys, or be left out" }
      do throws(BackupError) { _ = try encryption() } catch { return "encryptTo: \(error.detail)" }
    }
    return nil
  }

  private static func unknownKey(in bytes: [UInt8]) throws -> String? {
    let all = try JSONDecoder().decode([String: Ignored].self, from: Data(bytes))
    if let key = all.keys.sorted().first(where: { !knownKeys.contains($0) }) { return key }
    struct Nested: Decodable { var keep: [String: Ignored]? }
    let keep = try JSONDecoder().decode(Nested.self, from: Data(bytes)).keep ?? [:]
    return keep.keys.sorted().first { !RetentionPolicy.knownKeys.contains($0) }.map { "keep.\($0)" }
  }

  private struct Ignored: Decodable {
    init(from decoder: any Decoder) throws {}
  }
}

extension BackupError {
  fileprivate static func policy(_ detail: String, at path: FilePath?) -> BackupError {
    BackupError(.policyUnreadable, operation: "read the backup policy", path: path, detail: detail)
  }
}

extension DecodingError {
  /// What is wrong, without a value of the file.
  fileprivate var plainWords: String {
    func place(_ path: [any CodingKey]) -> String {
      path.isEmpty ? "it" : printable(path.map(\.stringValue).joined(separator: "."))
    }
    switch self {
    case .keyNotFound(let key, let context):
      return "\(place(context.codingPath + [key])) is missing"
    case .typeMismatch(_, let context), .valueNotFound(_, let context):
      return "\(place(context.codingPath)) is of the wrong kind"
    case .dataCorrupted(let context):
      return context.codingPath.isEmpty
        ? "it is not JSON" : "\(place(context.codingPath)): \(printable(context.debugDescription))"
    @unknown default: return "it cannot be read"
    }
  }
}
