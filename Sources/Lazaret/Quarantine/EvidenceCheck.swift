package import Platform
internal import Salvage
import SystemPackage

/// How the files of a quarantined store are now, compared with what its receipt says of them.
package struct EvidenceCheck: Sendable, Hashable, Encodable {
  /// What was compared.
  package enum Depth: String, Sendable, Hashable, Encodable {
    /// That the files are there, and their sizes.
    case size

    /// Their content, by its SHA-256.
    case content
  }

  /// A file that is not as the receipt says.
  package struct Difference: Sendable, Hashable, Codable {
    /// What is different of it.
    package enum Kind: String, Sendable, Hashable, Codable {
      /// It is not there any more.
      case missing

      case size

      /// It has its size, and other content.
      case content

      /// It was not there when the store was quarantined.
      case added
    }

    /// Its name in the folder of the receipt.
    package var name: PathText

    /// What is different.
    package var kind: Kind

    /// Its size when the store was quarantined, in bytes; nil where it was not there.
    package var notedBytes: Int64?

    /// Its size now, in bytes; nil where it is not there.
    package var bytes: Int64?

    /// It and what is different, in words.
    package var words: String {
      let name = printable(name.text)
      return switch kind {
      case .missing: "\(name) is missing"
      case .size: "\(name) has \(counted(bytes ?? 0, "byte")), and had \(grouped(notedBytes ?? 0))"
      case .content: "\(name) has other content"
      case .added: "\(name) was not there"
      }
    }
  }

  /// What was compared.
  package var checked: Depth

  /// The files that are not as the receipt says, in its order.
  package var differences: [Difference]

  /// Whether no file of the store is there any more.
  package var isMissing: Bool

  /// The SHA-256 over the names and contents of all files, in hexadecimal digits; nil where the content was not compared.
  package var digest: String?

  private enum CodingKeys: String, CodingKey {
    case checked
    case differences
    case isMissing = "missing"
  }

  /// What is not as it was, in a sentence; nil where nothing was found.
  package var words: String? {
    Self.words(differences).map { "It is no longer what was quarantined: \($0)." }
  }

  /// The first differences in words, and how many more there are; nil for none.
  package static func words(_ differences: [Difference]) -> String? {
    guard !differences.isEmpty else { return nil }
    let told = 3
    let rest = differences.count - told
    return differences.prefix(told).map(\.words).joined(separator: "; ")
      + (rest > 0 ? "; and \(counted(rest, "more file", "more files"))" : "")
  }
}

extension QuarantineFolder {
  /// Compares the files of a quarantined store with its receipt; nil where there is no receipt to compare with.
  ///
  /// - Parameter depth: whether their contents are read, too.
  /// - Throws: what the file system says.
  package func check(
    evidenceOf store: QuarantinedStore, _ depth: EvidenceCheck.Depth
  ) throws -> EvidenceCheck? {
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
        digest = try FileDigest(of: fileSystem.open(place)).hexadecimal
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
        found += Array("\(name.string)\0\(try FileDigest(of: fileSystem.open(place)).hexadecimal)\n".utf8)
      }
      check.differences.append(
        .init(name: PathText(FilePath(root: nil, [name])), kind: .added, bytes: status.size))
    }
    check.isMissing = try store.files.members(in: fileSystem).isEmpty
    if depth == .content { check.digest = FileDigest(of: found).hexadecimal }
    return check
  }

  /// Where a file of a receipt lies; nil for a name that leads out of the folder, which no receipt of this software has.
  private func place(of file: Receipt.File) -> FilePath? {
    guard let name = file.name.path, name.isRelative, !name.components.contains(where: { $0.kind != .regular }) else {
      return nil
    }
    return path.pushing(name)
  }
}

extension EvidenceCheck {
  /// What to do where files are not as they were quarantined; nil where nothing was found.
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

  /// What was compared and found, in a sentence.
  package var sentence: String {
    if isMissing { return "Its files are missing; only its receipt is left." }
    if let words { return words }
    return checked == .size
      ? "Its files are there with the sizes that they had." : "Its files are as they were quarantined."
  }

  /// What programs are told of it, with what to do.
  package func payload(on store: QuarantinedStore) -> JSON.Object { JSON.Object(self, ["hint": hint(on: store)]) }
}

extension Receipt.Salvage.Evidence {
  /// Which files were not as they were quarantined when the result was made, in a sentence; nil for none, or where that was not
  /// noted.
  package var changeWords: String? {
    EvidenceCheck.words(changes ?? []).map {
      "When it was salvaged, the files were no longer what was quarantined: \($0)."
    }
  }
}
