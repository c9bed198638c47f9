internal import Foundation
public import StoreFiles
public import SystemPackage

/// The secret word by which a receiver knows the sender; never written anywhere by this module.
public struct AccessToken: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible {
  private let text: String

  /// A token as it was given, without white space around it.
  ///
  /// - Throws: `send-request` unless it is a word of 1 to 4096 characters as RFC 6750, section 2.1, allows them.
  public init(_ text: some StringProtocol) throws(SendingError) {
    let word = text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard (1...4096).contains(word.utf8.count), word.utf8.allSatisfy(Self.isAllowed) else {
      throw SendingError(
        .request, operation: "read the token", detail: "it is empty, too long, or has characters that no token has",
        hint: "Give the token as the receiver gave it to you, and nothing else.")
    }
    self.text = word
  }

  /// The token in a file.
  ///
  /// - Throws: the same, or what the file system says.
  public init(at path: FilePath, in fileSystem: FileSystem) throws(SendingError) {
    do {
      try self.init(String(decoding: try fileSystem.contents(of: path, limit: 8 << 10), as: UTF8.self))
    } catch {
      var told = SendingError.told(error, operation: "read the token", path: path)
      told.path = path
      throw told
    }
  }

  /// The value of `Authorization`.
  var field: String { "Bearer \(text)" }

  /// Whether a text gives the token away.
  func isSaid(in other: String) -> Bool { other.contains(text) }

  /// Never the token itself.
  public var description: String { "a token" }

  /// Never the token itself.
  public var debugDescription: String { description }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "-._~+/=".utf8.contains(byte)
    }
  }
}
