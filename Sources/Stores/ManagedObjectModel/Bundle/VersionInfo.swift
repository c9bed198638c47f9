internal import PropertyLists

/// What a compiled bundle says about its versions in `VersionInfo.plist` (section 2.1).
struct VersionInfo {
  /// The current version, without extension.
  var currentVersionName: String?

  /// The hashes of each version's entities.
  var hashes: [String: [String: VersionHash]]

  /// The checksum of each version, in base 64; newer compilers write it.
  var checksums: [String: String]

  init(_ bytes: [UInt8]) throws(ModelError) {
    let list: PropertyList
    do {
      list = try PropertyList(bytes)
    } catch {
      throw ModelError(error)
    }
    currentVersionName = list["NSManagedObjectModel_CurrentVersionName"]?.string
    hashes = [:]
    for (version, entities) in list["NSManagedObjectModel_VersionHashes"]?.dictionary ?? [:] {
      hashes[version] = (entities.dictionary ?? [:]).compactMapValues { $0.data.flatMap { VersionHash(bytes: $0) } }
    }
    checksums = (list["NSManagedObjectModel_VersionChecksums"]?.dictionary ?? [:]).compactMapValues(\.string)
  }
}
