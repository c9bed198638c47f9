public import SystemPackage

/// All versions of an app's model, oldest first.
public struct ModelBundle: Sendable {
  /// A version that is in the bundle and cannot be read.
  public struct UnreadableVersion: Sendable {
    /// The name of the version.
    public let name: String

    /// Why it cannot be read.
    public let error: ModelError
  }

  /// What becomes of a version that cannot be read.
  public enum UnreadableVersionPolicy: Sendable, Hashable {
    /// Loading throws an error that names the version. A store of that version could otherwise not be told from one of
    /// a version that never was.
    case refuse

    /// The other versions are loaded, and `unreadableVersions` tells of it; the current version must be readable.
    case report
  }

  /// The name of the bundle: that of its file or folder, without extension.
  public let name: String

  /// Where it was loaded from.
  public let path: FilePath?

  /// The versions, oldest first: in the order given by the caller, else in natural order of their names (`V2` before
  /// `V10`) with the current version last.
  public let versions: [ModelVersion]

  /// The versions that could not be read; empty unless they were to be reported only.
  public let unreadableVersions: [UnreadableVersion]

  /// The version that stores are created with and migrated to.
  public let current: ModelVersion

  /// Puts a bundle together from versions that are read already; the first that is current counts, else the last.
  ///
  /// Returns nil for no versions at all.
  public init?(
    name: String, path: FilePath? = nil, versions: [ModelVersion], unreadableVersions: [UnreadableVersion] = []
  ) {
    guard let current = versions.first(where: \.isCurrent) ?? versions.last else { return nil }
    self.name = name
    self.path = path
    self.versions = versions
    self.unreadableVersions = unreadableVersions
    self.current = current
  }

  /// The version of that name.
  public func version(named name: String) -> ModelVersion? { versions.first { $0.name == name } }

  /// The version that a store with these version hashes was written with; the newest one where several fit.
  public func version(matching hashes: [String: VersionHash]) -> ModelVersion? {
    versions.last { $0.versionHashes == hashes }
  }
}

/// Names in the order in which people count: runs of digits by their value, letters without regard to case.
///
/// Equal names in that sense are ordered by their code units, so that the order is always the same.
package func precedesNaturally(_ first: String, _ second: String) -> Bool {
  let (left, right) = (naturalKey(first), naturalKey(second))
  for (one, other) in zip(left, right) where one != other { return one < other }
  if left.count != right.count { return left.count < right.count }
  return precedesByCodeUnit(first, second)
}

/// A piece of a name: spaces and punctuation come before digits, digits before letters.
private enum NaturalPiece: Comparable {
  case number(length: Int, digits: String)
  case letter(UInt16)

  static func < (first: NaturalPiece, second: NaturalPiece) -> Bool {
    switch (first, second) {
    case (.number(let length, let digits), .number(let otherLength, let otherDigits)):
      length != otherLength ? length < otherLength : digits < otherDigits
    case (.letter(let unit), .letter(let other)): unit < other
    case (.number, .letter(let unit)): unit >= 0x30
    case (.letter(let unit), .number): unit < 0x30
    }
  }
}

private func naturalKey(_ name: String) -> [NaturalPiece] {
  var pieces: [NaturalPiece] = []
  var rest = Array(name.lowercased().utf16)[...]
  let isDigit = { (unit: UInt16) in (0x30...0x39).contains(unit) }
  while let unit = rest.first {
    if isDigit(unit) {
      let digits = String(decoding: rest.prefix(while: isDigit).drop { $0 == 0x30 }, as: UTF16.self)
      pieces.append(.number(length: digits.utf8.count, digits: digits))
      rest = rest.drop(while: isDigit)
    } else {
      pieces.append(.letter(unit))
      rest = rest.dropFirst()
    }
  }
  return pieces
}
