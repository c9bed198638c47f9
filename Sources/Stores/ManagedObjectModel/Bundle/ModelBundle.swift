public import StoreFiles
public import SystemPackage

/// All versions of an app's model, oldest first.
public struct ModelBundle: Sendable {
  /// A version that is in the bundle and cannot be read.
  public struct UnreadableVersion: Sendable {
    /// The name of the version.
    public let name: String

    /// Why it cannot be read.
    public let error: ModelError

    /// A version that cannot be read.
    package init(name: String, error: ModelError) {
      self.name = name
      self.error = error
    }
  }

  /// The name of the bundle: that of its file or folder, without extension.
  public let name: String

  /// Where it was loaded from.
  public let path: FilePath?

  /// The versions, oldest first: in the order given by the caller or a lock file, else in natural order of their names
  /// (`V2` before `V10`), which says little; `order` tells what is known.
  public private(set) var versions: [ModelVersion]

  /// The versions of the folder that a given order leaves out: stores of them are recognized, and nothing leads through them.
  public private(set) var unorderedVersions: [ModelVersion]

  /// The versions that could not be read; the current one is never among them.
  public let unreadableVersions: [UnreadableVersion]

  /// The version that stores are created with and migrated to.
  public private(set) var current: ModelVersion

  /// The name of the version that the caller chose as the current one, whatever the order says; nil for the bundle's own.
  private var chosenName: String?

  /// What is known of the order of the versions.
  public private(set) var order: VersionOrder

  /// Puts a bundle together from versions that are read already; the first that is current counts, else the last.
  ///
  /// Returns nil for no versions at all.
  ///
  /// - Parameters:
  ///   - isOrdered: whether the versions come in the order in which they were made; else only their names tell.
  ///   - unordered: versions that the order leaves out.
  public init?(
    name: String, path: FilePath? = nil, versions: [ModelVersion], isOrdered: Bool = true,
    unordered: [ModelVersion] = [], unreadableVersions: [UnreadableVersion] = []
  ) {
    guard let current = versions.first(where: \.isCurrent) ?? versions.last else { return nil }
    self.name = name
    self.path = path
    self.versions = versions
    unorderedVersions = unordered
    self.unreadableVersions = unreadableVersions
    self.current = current
    let names = versions.map(\.name)
    order = VersionOrder(names: names + unordered.map(\.name), given: isOrdered ? names : nil)
  }

  /// Names of versions in the order in which people count: `V2` before `V10`.
  public static func namesInOrder(_ names: [String]) -> [String] { names.ordered(by: precedesNaturally) }

  /// The version of that name.
  public func version(named name: String) -> ModelVersion? {
    versions.first { $0.name == name } ?? unorderedVersions.first { $0.name == name }
  }

  /// The same bundle with another version as the current one; nil where it has none of that name that can be read.
  package func choosing(_ name: String) -> ModelBundle? {
    guard let chosen = version(named: name) else { return nil }
    var bundle = self
    bundle.versions = versions.map { $0.named(current: name) }
    bundle.unorderedVersions = unorderedVersions.map { $0.named(current: name) }
    bundle.current = chosen.named(current: name)
    bundle.chosenName = name
    return bundle
  }

  /// The same bundle, with pairs of versions of which the first is known to have come before the second.
  public func knowing(_ pairs: [(before: String, after: String)]) -> ModelBundle {
    var bundle = self
    bundle.order = order.knowing(pairs)
    return bundle
  }

  /// The versions that are not newer than one of them, that one last.
  public func versions(upTo version: ModelVersion) -> [ModelVersion] {
    versions.filter { $0.name != version.name && !isNewer($0, than: version) } + [version]
  }

  /// The versions that come after one of them, by what is known or by their names.
  public func versions(after version: ModelVersion) -> [ModelVersion] {
    versions.filter { order.comes($0.name, after: version.name) }
  }

  /// Whether the order that was given leaves a version out, and nothing else tells how it stands to the current one.
  package func isUnlisted(_ version: ModelVersion) -> Bool {
    order.isGiven && unorderedVersions.contains { $0.name == version.name }
      && order.relation(version.name, to: current.name) == nil
  }

  /// Whether a store of one version is newer than another version: by what is known of the order, and never by its name.
  ///
  /// A version that the given order leaves out counts as newer where it has what the other lacks; and none is newer than one
  /// that was chosen.
  public func isNewer(_ version: ModelVersion, than other: ModelVersion) -> Bool {
    guard version.versionHashes != other.versionHashes, other.name != chosenName else { return false }
    if let known = order.relation(version.name, to: other.name) { return known == .after }
    return isUnlisted(version) && !version.model.surplus(over: [other.model]).isEmpty
  }
}

/// Names in the order in which people count: runs of digits by their value, letters without regard to case, and spaces and
/// punctuation not at all.
///
/// Equal names in that sense are ordered by their code units, so that the order is always the same.
package func precedesNaturally(_ first: String, _ second: String) -> Bool {
  let (left, right) = (naturalKey(first), naturalKey(second))
  return left == right ? precedesByCodeUnit(first, second) : left.lexicographicallyPrecedes(right)
}

/// A piece of a name; numbers come before letters, and shorter ones before longer ones.
private enum NaturalPiece: Comparable {
  case number(length: Int, digits: String)
  case letter(UInt16)
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
      if unit > 0x7F || (0x61...0x7A).contains(unit) { pieces.append(.letter(unit)) }
      rest = rest.dropFirst()
    }
  }
  return pieces
}
