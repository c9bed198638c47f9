package import StoreCoordination

/// A model that the inspector was given: what is in it, and the name it goes by.
package struct InspectorModel: Sendable {
  /// The name in addresses and on pages, different for each; the name of the file without its extension, as far as it can be.
  package let name: String

  /// The model.
  package let model: AppModel

  /// Models with names that are all different: where two files have one name the later gets a number.
  package static func named(_ models: [(name: String, model: AppModel)]) -> [InspectorModel] {
    var taken: Set<String> = []
    return models.map { name, model in
      let plain = StoreID.plain(name)
      var unique = plain
      var number = 2
      while !taken.insert(unique).inserted {
        unique = "\(plain)-\(number)"
        number += 1
      }
      return InspectorModel(name: unique, model: model)
    }
  }
}
