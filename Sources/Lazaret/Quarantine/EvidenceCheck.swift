package import Platform
internal import Salvage
import SystemPackage

/// The comparison of a quarantined store's files with its receipt.
package struct EvidenceCheck: Sendable, Hashable, Encodable {
  package enum Depth: String, Sendable, Hashable, Encodable {
    /// Presence and size.
    case size

    /// The SHA-256 of the content.
    case content
  }

  /// A file that differs from the receipt.
  package struct Difference: Sendable, Hashable, Codable {
    package enum Kind: String, Sendable, Hashable, Codable {
      case missing

      case size

      /// Equal size, other content.
      case content

      case added
    }

    /// The name in the receipt's folder.
    package var name: PathText

    package var kind: Kind

    /// The size at the quarantine.
    var notedBytes: Int64?

    var bytes: Int64?

    var words: String {
      let name = printable(name.text)
      return switch kind {
      case .missing: "\(name) is missing"
      case .size: "\(name) has \(counted(bytes ?? 0, "byte")), and had \(grouped(notedBytes ?? 0))"
      case .content: "\(name) has other content"
      case .added: "\(name) was not there"
      }
    }
  }

  var checked: Depth

  /// The differing files, in the receipt's order.
  package var differences: [Difference]

  /// Whether all files are missing.
  package var isMissing: Bool

  /// The SHA-256 over the names and contents of all files; nil if contents were not compared.
  package var digest: String?

  private enum CodingKeys: String, CodingKey {
    case checked, differences
    case isMissing = "missing"
  }

  /// A sentence on the differences.
  package var words: String? { Self.words(differences).map { "It is no longer what was quarantined: \($0)." } }

  /// Returns the first differences and the number of further ones.
  static func words(_ differences: [Difference]) -> String? {
    guard !differences.isEmpty else { return nil }
    let told = 3
    let rest = differences.count - told
    return differences.prefix(told).map(\.words).joined(separator: "; ")
      + (rest > 0 ? "; and \(counted(rest, "more file", "more files"))" : "")
  }
}

extension QuarantineFolder {
  /// Compares a quarantined store's files with its receipt, if any.
  ///
  /// - Parameter depth: whether to read the contents.
  package func check(evidenceOf store: QuarantinedStore, _ depth: EvidenceCheck.Depth) throws -> EvidenceCheck? {
    guard let receipt = store.receipt else { return nil }
    var check = EvidenceCheck(checked: depth, differences: [], isMissing: false)
    var found: [UInt8] = []
    var known: Set<FilePath> = []
    for file in receipt.files {
      guard let place = place(of: file) else { continue }
      known.insert(place)
      var difference = EvidenceCheck.Difference(name: file.name, kind: .missing, notedBytes: file.bytes)
      guard let status = try fileSystem.status(of: place), status.kind == .regular else {
        check.differences.append(difference)
        continue
      }
      difference.bytes = status.size
      var digest: String?
      if depth == .content {
        digest = try KeptFileDigest(of: fileSystem.open(place), like: file.sha256).text
        found += Array("\(file.name.text)\0\(digest ?? "")\n".utf8)
      }
      if status.size != file.bytes {
        difference.kind = .size
      } else if let digest, digest != file.sha256 {
        difference.kind = .content
      } else {
        continue
      }
      check.differences.append(difference)
    }
    for part in [StoreFileSet.Part.main, .wal, .journal] {
      let place = store.files.path(of: part)
      guard !known.contains(place), let name = place.lastComponent, let status = try fileSystem.status(of: place),
        status.kind == .regular, status.size > 0
      else { continue }
      if depth == .content {
        found += Array("\(name.string)\0\(try KeptFileDigest(of: fileSystem.open(place)).text)\n".utf8)
      }
      check.differences.append(.init(name: PathText(FilePath(root: nil, [name])), kind: .added, bytes: status.size))
    }
    check.isMissing = try store.files.members(in: fileSystem).isEmpty
    if depth == .content { check.digest = FileDigest(of: found).hexadecimal }
    return check
  }

  /// Returns a file's path; nil for one outside the folder, as in a forged receipt.
  private func place(of file: Receipt.File) -> FilePath? {
    guard let name = file.name.path, name.isRelative, !name.components.contains(where: { $0.kind != .regular }) else {
      return nil
    }
    return path.pushing(name)
  }
}

extension EvidenceCheck {
  package func hint(on store: QuarantinedStore) -> String? {
    if isMissing {
      return "Put its files back from a copy, under their names; what is left of it is removed with: "
        + "lazaret quarantine discard \(shellQuoted(store.files.main))"
    }
    if differences.isEmpty { return nil }
    return checked == .size
      ? "Compare the contents with: lazaret quarantine show \(shellQuoted(store.files.main))"
      : "Where a copy of the files is as the receipt says, put that in their place."
  }

  /// A sentence on the comparison and its result.
  package var sentence: String {
    if isMissing { return "Its files are missing; only its receipt is left." }
    if let words { return words }
    return checked == .size
      ? "Its files are there with the sizes that they had." : "Its files are as they were quarantined."
  }

  package func payload(on store: QuarantinedStore) -> JSON.Object { JSON.Object(self, ["hint": hint(on: store)]) }
}

extension Receipt.Salvage.Evidence {
  /// A sentence on files that had changed before the result was made.
  package var changeWords: String? {
    EvidenceCheck.words(changes ?? []).map {
      "When it was salvaged, the files were no longer what was quarantined: \($0)."
    }
  }
}
