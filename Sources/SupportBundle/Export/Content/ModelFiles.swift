internal import ManagedObjectModel
internal import PersistentStore
internal import Platform

/// The models of a store, compiled and as JSON: `data/model/…`.
enum ModelFiles {
  static func items(given: AppModel?, found examination: Examination, _ log: inout OpeningLog) -> [BundleItem] {
    var items: [BundleItem] = []
    switch given {
    case .coreData(let bundle): items += self.items(of: bundle, in: "model/given", "the model that the app has", &log)
    case .sqlite(let script, let name):
      items.append(
        BundleItem(
          "model/given/\(plain(name)).sql", .bytes(Array(script.text.utf8)), words: "the schema that the app expects"))
    case nil: break
    }
    if let model = examination.storeModel {
      let version = ModelVersion(name: examination.modelVersion ?? "Store", model: model, isCurrent: true)
      if let bundle = ModelBundle(name: "Store", versions: [version]) {
        items += self.items(of: bundle, in: "model/store", "the model that the store was written with", &log)
      }
    }
    return items
  }

  private static func items(
    of bundle: ModelBundle, in folder: String, _ words: String, _ log: inout OpeningLog
  ) -> [BundleItem] {
    var items: [BundleItem] = []
    var names = Set<String>()
    for version in bundle.versions {
      var name = plain(version.name)
      while !names.insert(name.lowercased()).inserted { name += "_" }
      do throws(ModelError) {
        let bytes = try version.model.compiledBytes()
        items.append(BundleItem("\(folder)/\(name).mom", .bytes(bytes), words: words + ", compiled"))
      } catch {
        log.add("info", "model", "version \(version.name) cannot be compiled: \(error.detail)")
      }
    }
    do throws(FileError) {
      let bytes = try JSON.bytes(of: bundle.payload(), to: "export the model")
      items.append(BundleItem("\(folder)/model.json", .bytes(bytes), words: words))
    } catch {
      // Only default values that are not finite numbers lead here.
      log.add("info", "model", "the model has values that JSON has no word for")
    }
    return items
  }

  /// Keeps characters that are portable in file names.
  static func plain(_ text: String) -> String {
    let name = String(
      text.unicodeScalars.prefix(60).map { scalar in
        scalar.isASCII && (scalar.properties.isAlphabetic || "0123456789._-".unicodeScalars.contains(scalar))
          ? Character(scalar) : "_"
      })
    return name.isEmpty || name.hasPrefix(".") || name.hasSuffix(".") ? "_\(name)_" : name
  }
}
